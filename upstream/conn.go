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
	size   uint64
	chunks http1.Chunked
}

// newPending copies the head, which lies in a shared buffer.
func newPending(head []byte) *pending {
	r, _, _ := parseRequest(bytes.Clone(head))
	return &pending{request: r}
}

// read takes a part of the body from data. Only a body that is going to be
// echoed is kept.
func (p *pending) read(data []byte) (used int, done bool, status int) {
	if !p.request.chunked {
		n := int(min(p.request.length-p.size, uint64(len(data))))
		p.add(data[:n])
		return n, p.size == p.request.length, 0
	}
	for used < len(data) && !done {
		payload, n, last, err := p.chunks.Next(data[used:])
		if err != nil {
			return used, false, 400
		}
		p.add(payload)
		if p.size > maxBody {
			return used, false, 413
		}
		used, done = used+n, last
	}
	return used, done, 0
}

func (p *pending) add(b []byte) {
	p.size += uint64(len(b))
	if isAnything(p.request.target) {
		p.body = append(p.body, b...)
	}
}
