package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"armrepro/proxycheck/etcdhttp"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(host string, port uint16, weight uint32) node { return node{host, port, &weight} }

func TestBalancer(t *testing.T) {
	t.Parallel()
	b := newBalancer([]node{at("a", 1, 3), at("b", 1, 0), at("c", 1, 1)})
	var order []string
	for range 8 {
		order = append(order, b.next().host)
	}
	if got := strings.Join(order, ""); got != "aacaaaca" {
		t.Errorf("picked %s", got)
	}
	if n := newBalancer([]node{at("b", 1, 0)}).next(); n != nil {
		t.Errorf("picked %+v, which has no weight", n)
	}
	first := b.next()
	second := b.next(first)
	if second == nil || second == first {
		t.Fatalf("after %+v picked %+v", first, second)
	}
	if n := b.next(first, second); n != nil {
		t.Errorf("picked %+v after every node was tried", n)
	}
}

func TestLimiter(t *testing.T) {
	t.Parallel()
	l := newLimiter(&limitSpec{Count: 2, Seconds: 60})
	for _, step := range []struct {
		client string
		after  time.Duration
		left   int64
		ok     bool
		end    time.Duration
	}{
		{"a", 0, 1, true, 60 * time.Second},
		{"a", time.Second, 0, true, 60 * time.Second},
		{"a", 2 * time.Second, 0, false, 60 * time.Second},
		{"b", 3 * time.Second, 1, true, 63 * time.Second},
		{"a", 59 * time.Second, 0, false, 60 * time.Second},
		{"a", 60 * time.Second, 1, true, 120 * time.Second},
	} {
		left, end, ok := l.take(step.client, epoch.Add(step.after))
		if left != step.left || ok != step.ok || end != epoch.Add(step.end) {
			t.Errorf("%s after %s: %d left, until %s, %v", step.client, step.after, left, end.Sub(epoch), ok)
		}
	}
}

func TestLimiterForgets(t *testing.T) {
	t.Parallel()
	l := newLimiter(&limitSpec{Count: 2, Seconds: 60})
	for i := range 3 * maxClients {
		l.take(fmt.Sprint(i), epoch.Add(time.Duration(i)*time.Minute))
	}
	if n := len(l.windows); n > maxClients {
		t.Errorf("%d windows are kept", n)
	}
}

func TestLimitHeaders(t *testing.T) {
	t.Parallel()
	l := newLimiter(&limitSpec{Count: 2, Seconds: 60, Headers: true})
	hidden := newLimiter(&limitSpec{Count: 2, Seconds: 60})
	for l, want := range map[*limiter]string{
		l:      "map[X-RateLimit-Limit:[2] X-RateLimit-Remaining:[1] X-RateLimit-Reset:[3]]",
		hidden: "map[]",
	} {
		h := http.Header{}
		l.header(h, 1, epoch.Add(2100*time.Millisecond), epoch)
		if got := fmt.Sprint(map[string][]string(h)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	all := map[string]*route{}
	for id, s := range map[string]spec{
		"exact":    {URI: "/hello"},
		"short":    {URI: "/a*"},
		"long":     {URI: "/a/b/*"},
		"off":      {URI: "/off"},
		"minor":    {URI: "/twice", Priority: 1},
		"major":    {URI: "/twice", Priority: 2},
		"twice-b":  {URI: "/same*"},
		"twice-a":  {URI: "/same*"},
		"asterisk": {URI: "/literal/*"},
	} {
		if id != "off" {
			s.Status = 1
		}
		all[id] = &route{spec: &s, id: id}
	}
	table := newTable(all)
	got := map[string]string{}
	want := map[string]string{
		"/hello": "exact", "/hello/": "", "/a": "short", "/ab": "short", "/a/b/": "long", "/a/b/c": "long",
		"/off": "", "/twice": "major", "/same": "twice-a", "/": "", "": "", "/literal": "", "/literal/": "asterisk",
	}
	for path := range want {
		got[path] = ""
		if r := table.find(path); r != nil {
			got[path] = r.id
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUnderPrefix(t *testing.T) {
	t.Parallel()
	r := etcdhttp.Under("/apisix/routes/")
	if string(r.Key) != "/apisix/routes/" || string(r.RangeEnd) != "/apisix/routes0" {
		t.Errorf("from %s to %s", r.Key, r.RangeEnd)
	}
}

func TestValidID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"1": true, "armrepro-a.B_9": true, strings.Repeat("a", 64): true,
		"": false, "a b": false, "a/b": false, "ä": false, strings.Repeat("a", 65): false,
	} {
		if validID(id) != want {
			t.Errorf("%q: %v, want %v", id, !want, want)
		}
	}
}
