package gateway

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

// maxClients is how many clients' windows are kept before those that are over
// are dropped.
const maxClients = 4096

// limiter is the plugin limit-count with the policy local: so many requests of
// one client in a window that begins with its first.
type limiter struct {
	*limitSpec
	limit   []string // the header X-RateLimit-Limit
	mu      sync.Mutex
	windows map[string]*limitWindow
}

type limitWindow struct {
	left int64
	end  time.Time
}

func newLimiter(s *limitSpec) *limiter {
	return &limiter{
		limitSpec: s,
		limit:     []string{strconv.FormatInt(s.count, 10)},
		windows:   map[string]*limitWindow{},
	}
}

// take counts one request of client at now. It returns how many are left in
// the window, when that ends, and whether the request may pass.
func (l *limiter) take(client string, now time.Time) (left int64, end time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.windows[client]
	if w == nil || !now.Before(w.end) {
		if w == nil && len(l.windows) >= maxClients {
			l.drop(now)
		}
		w = &limitWindow{left: l.count, end: now.Add(windowLength(l.window))}
		l.windows[client] = w
	}
	if w.left == 0 {
		return 0, w.end, false
	}
	w.left--
	return w.left, w.end, true
}

// drop forgets the windows that are over.
func (l *limiter) drop(now time.Time) {
	for client, w := range l.windows {
		if !now.Before(w.end) {
			delete(l.windows, client)
		}
	}
}

// windowLength is a time of so many seconds, at most what a Duration holds.
func windowLength(seconds int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Second)
	return time.Duration(min(seconds, most)) * time.Second
}

// header adds the quota headers. 2.x shows none on an answer that rejects, 3.x
// all of them and when the window ends.
func (l *limiter) header(h http.Header, d Dialect, left int64, end, now time.Time, passed bool) {
	if !l.headers || d == V2 && !passed {
		return
	}
	h["X-RateLimit-Limit"] = l.limit
	h["X-RateLimit-Remaining"] = []string{strconv.FormatInt(left, 10)}
	if d == V3 {
		seconds := (end.Sub(now) + time.Second - 1) / time.Second
		h["X-RateLimit-Reset"] = []string{strconv.FormatInt(int64(seconds), 10)}
	}
}
