package gateway

import (
	"slices"
	"sync"
)

// balancer spreads requests over nodes by weight, evenly interleaved: the
// smooth weighted round robin of nginx.
type balancer struct {
	mu    sync.Mutex
	nodes []*balanced
}

type balanced struct {
	address string
	host    string
	weight  int64
	current int64
}

// newBalancer takes the nodes whose weight is above zero.
func newBalancer(nodes []node) *balancer {
	b := &balancer{}
	for _, n := range nodes {
		if n.weight > 0 {
			b.nodes = append(b.nodes, &balanced{address: n.address(), host: n.host, weight: n.weight})
		}
	}
	return b
}

// next picks a node that is not among tried, nil if there is none.
func (b *balancer) next(tried ...*balanced) *balanced {
	if len(b.nodes) == 1 && len(tried) == 0 {
		return b.nodes[0]
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var best *balanced
	total := int64(0)
	for _, n := range b.nodes {
		if slices.Contains(tried, n) {
			continue
		}
		n.current += n.weight
		total += n.weight
		if best == nil || n.current > best.current {
			best = n
		}
	}
	if best != nil {
		best.current -= total
	}
	return best
}
