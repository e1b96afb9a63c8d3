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

	"armrepro/proxycheck/etcdhttp"
)

// route is a route that the data plane serves.
type route struct {
	*spec
	id string
	// value is what etcd holds, to tell whether a route has changed.
	value    []byte
	balancer *balancer
	limiter  *limiter
	// label is the route's label on metrics.
	label string
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
	etcd      *etcd
	prefix    string // of the keys, such as /apisix/routes/
	log       zerolog.Logger
	table     atomic.Pointer[table]
	reachable atomic.Bool
	// byID is used by one goroutine only.
	byID map[string]*route
}

// The pauses between attempts to reach an etcd that is away.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// load reads every route and returns the revision to watch from.
func (s *routes) load(ctx context.Context) (int64, error) {
	kvs, revision, err := s.etcd.read(ctx, etcdhttp.Under(s.prefix))
	s.reachable.Store(err == nil)
	if err != nil {
		return 0, err
	}
	before := s.byID
	s.byID = map[string]*route{}
	for _, kv := range kvs {
		if id, ok := s.routeID(kv.Key); ok {
			s.set(id, kv.Value, before[id])
		}
	}
	s.table.Store(newTable(s.byID))
	return revision + 1, nil
}

// follow applies what changes after revision until ctx ends. When etcd goes
// away the routes stay as they are, and are read again when it is back.
func (s *routes) follow(ctx context.Context, revision int64) {
	pause := firstPause
	for ctx.Err() == nil {
		err := s.etcd.watch(ctx, etcdhttp.Under(s.prefix), revision, func(events []event, next int64) {
			revision = next
			s.apply(events)
		})
		for err != nil && ctx.Err() == nil {
			if s.reachable.Swap(false) {
				s.log.Warn().Err(err).Msg("lost etcd; the routes stay as they are")
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
			pause = min(2*pause, longestPause)
			if revision, err = s.load(ctx); err == nil {
				s.log.Info().Msg("etcd answers again; read its routes")
				pause = firstPause
			}
		}
	}
}

// apply makes the changes live.
func (s *routes) apply(events []event) {
	for _, e := range events {
		id, ok := s.routeID(e.KV.Key)
		switch {
		case !ok:
		case e.deleted():
			delete(s.byID, id)
		default:
			s.set(id, e.KV.Value, s.byID[id])
		}
	}
	s.table.Store(newTable(s.byID))
}

// set reads a route's value. A route that did not change keeps its counters; a
// value that is no route, such as the placeholders that APISIX writes, is
// passed over.
func (s *routes) set(id string, value []byte, before *route) {
	delete(s.byID, id)
	if before != nil && bytes.Equal(before.value, value) {
		s.byID[id] = before
		return
	}
	if !json.Valid(value) {
		s.log.Debug().Str("id", id).Msg("key is not a route")
		return
	}
	sp, err := parseSpec(value)
	if err != nil {
		s.log.Warn().Err(err).Str("id", id).Msg("could not serve route")
		return
	}
	s.byID[id] = newRoute(id, sp, value)
}

func newRoute(id string, sp *spec, value []byte) *route {
	r := &route{spec: sp, id: id, value: value, balancer: newBalancer(sp.nodes), label: id}
	if sp.prometheus != nil && sp.prometheus.PreferName {
		r.label = cmp.Or(sp.Name, id)
	}
	if sp.limit != nil {
		r.limiter = newLimiter(sp.limit)
	}
	return r
}

// routeID takes a route's id from its key.
func (s *routes) routeID(key []byte) (string, bool) {
	id, ok := strings.CutPrefix(string(key), s.prefix)
	return id, ok && validID(id)
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
