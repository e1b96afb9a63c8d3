package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// route is a route that the data plane serves.
type route struct {
	*spec
	id string
	// value is what etcd holds, to tell whether a route has changed.
	value    []byte
	balancer *balancer
	limiter  *limiter
	// unasked counts what no node was asked for; nil without prometheus.
	unasked func() *series
}

// table is what the data plane looks routes up in. It never changes; another
// takes its place.
type table struct {
	exact map[string]*route
	// prefixes are the routes that end in an asterisk, longest first.
	prefixes []*route
}

// find returns the route for a path: the exact one, else the longest prefix.
func (t *table) find(path string) *route {
	if r, ok := t.exact[path]; ok {
		return r
	}
	for _, r := range t.prefixes {
		if strings.HasPrefix(path, strings.TrimSuffix(r.URI, "*")) {
			return r
		}
	}
	return nil
}

// newTable orders routes. Of two with the same uri the one with the higher
// priority counts, then the one with the lower id.
func newTable(routes map[string]*route) *table {
	t := &table{exact: map[string]*route{}}
	sorted := make([]*route, 0, len(routes))
	for _, r := range routes {
		if r.Status == 1 {
			sorted = append(sorted, r)
		}
	}
	slices.SortFunc(sorted, func(a, b *route) int {
		return cmp.Or(len(b.URI)-len(a.URI), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.id, b.id))
	})
	for _, r := range sorted {
		if strings.HasSuffix(r.URI, "*") {
			t.prefixes = append(t.prefixes, r)
		} else if t.exact[r.URI] == nil {
			t.exact[r.URI] = r
		}
	}
	return t
}

// routes keeps the table in step with etcd.
type routes struct {
	store   *store
	log     zerolog.Logger
	metrics *metrics
	table   atomic.Pointer[table]
	// byID is used by one goroutine only.
	byID map[string]*route
}

// load reads every route and returns the revision at which it did.
func (s *routes) load(ctx context.Context) (int64, error) {
	kvs, revision, err := s.store.read(ctx, s.store.all())
	if err != nil {
		return 0, err
	}
	s.metrics.reachable.Set(1)
	byID := map[string]*route{}
	for _, kv := range kvs {
		id := strings.TrimPrefix(string(kv.Key), s.store.prefix)
		if r := s.routeOf(id, kv.Value); r != nil {
			byID[id] = r
		}
	}
	s.byID = byID
	s.table.Store(newTable(byID))
	return revision, nil
}

// retryEvery is the pause between attempts to reach an etcd that is away.
const retryEvery = 200 * time.Millisecond

// follow reads the routes again whenever they change after revision, until ctx
// ends. While etcd is away they stay as they are.
func (s *routes) follow(ctx context.Context, revision int64) {
	for ctx.Err() == nil {
		err := s.store.awaitChange(ctx, revision)
		if err == nil {
			revision, err = s.load(ctx)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		s.metrics.reachable.Set(0)
		s.log.Warn().Err(err).Msg("lost etcd; the routes stay as they are")
		for err != nil && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(retryEvery):
			}
			revision, err = s.load(ctx)
		}
		if err == nil {
			s.log.Info().Msg("etcd answers again; read its routes")
		}
	}
}

// routeOf is the route with that value. One that has not changed keeps its
// counters; a value that is no route, such as the placeholders that APISIX
// writes, gives nil.
func (s *routes) routeOf(id string, value []byte) *route {
	if before := s.byID[id]; before != nil && bytes.Equal(before.value, value) {
		return before
	}
	if !validID(id) || !json.Valid(value) {
		s.log.Debug().Str("id", id).Msg("key is not a route")
		return nil
	}
	sp, err := parseSpec(value)
	if err != nil {
		s.log.Warn().Err(err).Str("id", id).Msg("could not serve route")
		return nil
	}
	return newRoute(id, sp, value, s.metrics)
}

func newRoute(id string, sp *spec, value []byte, m *metrics) *route {
	r := &route{spec: sp, id: id, value: value, balancer: newBalancer(sp.nodes)}
	if sp.limit != nil {
		r.limiter = newLimiter(sp.limit)
	}
	if sp.prometheus != nil {
		label := id
		if sp.prometheus.PreferName {
			label = cmp.Or(sp.Name, id)
		}
		r.unasked = m.series(label, sp.URI, "")
		for _, n := range r.balancer.nodes {
			n.series = m.series(label, sp.URI, n.host)
		}
	}
	return r
}

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
	// series counts what the node was asked for; nil without prometheus.
	series func() *series
}

// newBalancer takes the nodes whose weight is above zero.
func newBalancer(nodes []node) *balancer {
	b := &balancer{}
	for _, n := range nodes {
		if *n.Weight > 0 {
			b.nodes = append(b.nodes, &balanced{address: n.address(), host: n.Host, weight: int64(*n.Weight)})
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
