package upstream

import (
	"bytes"
	"time"

	"armrepro/upstream/http1"
)

// conn is one client's connection. An idle one holds no buffer.
type conn struct {
	fd   int32
	open bool
	// closing says that the connection ends with the answers in out.
	closing bool
	// lingering says that it has ended for writing, and that what still
	// arrives is thrown away.
	lingering bool
	// since is when the current request began, or the last answer or idling.
	since time.Time
	// in is the beginning of a request's head.
	in []byte
	// out is what the client has not taken yet.
	out []byte
	// unsent counts the answers that out ends with or the loop collects.
	unsent uint64
	// pending is a request whose body is being read.
	pending *pending
}

// idle says that the connection is between requests.
func (c *conn) idle() bool { return c.pending == nil && len(c.in) == 0 && len(c.out) == 0 }

// pending is a request whose body is being read.
type pending struct {
	request request
	body    []byte
	// size is how much of the body has arrived.
	size  int
	parts http1.Body
}

// newPending copies the head, which lies in a shared buffer.
func newPending(head []byte) *pending {
	r, _, _ := parseRequest(bytes.Clone(head))
	p := &pending{request: r}
	p.parts.Begin(&r.Framing)
	return p
}

// read takes a part of the body from data. Only a body that is going to be
// echoed is kept.
func (p *pending) read(data []byte) (used int, done bool, status int) {
	for used < len(data) && !done {
		payload, n, last, err := p.parts.Next(data[used:])
		if err != nil {
			return used, false, 400
		}
		if p.size += len(payload); p.size > maxBody {
			return used, false, 413
		}
		if isAnything(p.request.target) {
			p.body = append(p.body, payload...)
		}
		used, done = used+n, last
	}
	return used, done, 0
}
