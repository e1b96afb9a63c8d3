package load

import (
	"testing"
)

// TestUntilClose has answers that end with the connection: over TLS only its
// announced end completes them.
func TestUntilClose(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end      func(*session)
		complete bool
	}{
		"announced": {func(c *session) {}, true},
		"cut":       {(*session).cut, false},
		"reset":     {func(c *session) { c.reset(); c.cut() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := transport{"https", listenTLS}.serve(t, func(c *session) {
				if c.request() && c.answer("HTTP/1.1 200 OK\r\n\r\nabc") {
					tt.end(c)
				}
			})
			m := runUntil(t, testConfig(s.url), func() bool { return s.answers.Load() > 20 })
			if tt.complete && (m.Requests == 0 || m.Errors != (Errors{}) || m.Reconnects != m.Requests) {
				t.Errorf("%d requests, errors %+v, %d reconnects", m.Requests, m.Errors, m.Reconnects)
			}
			if !tt.complete && (m.Requests != 0 || m.Errors.Read == 0 || m.Errors.Total() != m.Errors.Read) {
				t.Errorf("%d requests, errors %+v, want read errors alone", m.Requests, m.Errors)
			}
		})
	}
}

// TestFurtherRecord has a server that answers twice, each time in a record of its
// own, and one that announces the end of the stream after an answer.
func TestFurtherRecord(t *testing.T) {
	t.Parallel()
	https := transport{"https", listenTLS}
	twice := https.serve(t, func(c *session) {
		for c.request() && c.answer(okAnswer) && c.send(okAnswer) {
		}
	})
	// Both records may come together or not.
	m := runUntil(t, testConfig(twice.url), func() bool { return twice.answers.Load() > 100 })
	if m.Errors.Read == 0 {
		t.Errorf("%d requests and no read error, of %d answers to requests", m.Requests, twice.answers.Load())
	}
	once := https.serve(t, func(c *session) {
		if c.request() {
			c.answer(okAnswer)
		}
	})
	m = runUntil(t, testConfig(once.url), func() bool { return once.answers.Load() > 50 })
	if m.Reconnects == 0 || m.Errors != (Errors{}) {
		t.Errorf("%d requests, errors %+v, %d reconnects", m.Requests, m.Errors, m.Reconnects)
	}
}

func TestSecure(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{"http://x/": false, "https://x/": true, "HTTPS://x/": true} {
		to, err := newTarget(Config{URL: url})
		if err != nil || (&Runner{target: to}).Secure() != want {
			t.Errorf("%s: secure is not %v: %v", url, want, err)
		}
	}
}
