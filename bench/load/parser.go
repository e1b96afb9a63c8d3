package load

import (
	"bytes"
	"strconv"

	"armrepro/upstream/http1"
)

// parser reads one HTTP/1.1 response after the other from bytes that arrive in
// pieces of any size. It allocates nothing, unless a line comes in pieces.
type parser struct {
	head http1.Head
	// Framing is complete once the header is.
	http1.Framing
	body  http1.Body
	state parserState

	status int
	// interim says that a 1xx response has been read and that the real one is
	// still to come.
	interim bool
	// unfoldable says that the last line must not be continued by the next
	// (obs-fold), since it was read for good.
	unfoldable bool
	// bodiless says that the request's method gets no body (HEAD).
	bodiless bool
}

// How a response may break HTTP, in words.
const (
	errNoStatus    = http1.Error("no HTTP/1 status line")
	errControl     = http1.Error("zero byte or bare CR in a header")
	errNoHeader    = http1.Error("header line without a name and a colon")
	errFolded      = http1.Error("folded header that affects framing")
	errChunkedIn10 = http1.Error("chunked response in HTTP/1.0")
	errBadStatus   = http1.Error("status is not a number from 100 to 999")
	errUpgrade     = http1.Error("status 101, but no upgrade was requested")
)

type parserState uint8

const (
	inStatusLine parserState = iota
	inHeader
	inBody
	untilClose
)

// reset makes ready for the next response.
func (p *parser) reset() {
	p.head.Reset()
	*p = parser{head: p.head, body: p.body, bodiless: p.bodiless}
}

// started says whether a byte of the response has been read.
func (p *parser) started() bool {
	return p.state != inStatusLine || p.head.Started() || p.interim
}

// feed takes bytes of a response from data. It returns how many it took and
// whether the response is complete; it takes none beyond it.
func (p *parser) feed(data []byte) (used int, done bool, err error) {
	for used < len(data) && !done && err == nil {
		n := len(data) - used
		switch p.state {
		case inStatusLine, inHeader:
			n, done, err = p.feedHead(data[used:])
		case inBody:
			_, n, done, err = p.body.Next(data[used:])
		}
		used += n
	}
	return used, done, err
}

// end says that the server closed the connection: whether that completes the
// response.
func (p *parser) end() bool { return p.state == untilClose }

func (p *parser) feedHead(data []byte) (used int, done bool, err error) {
	text, used, complete, err := p.head.Next(data)
	switch {
	case p.state == inStatusLine && !beginsStatusLine(text):
		return used, false, errNoStatus // Its line may never end.
	case err != nil || !complete:
		return used, false, err
	case bytes.IndexByte(text, 0) >= 0 || bytes.IndexByte(text, '\r') >= 0:
		return used, false, errControl // RFC 9110, section 5.5, forbids both.
	case p.state == inStatusLine:
		p.state, p.unfoldable = inHeader, true
		err = p.statusLine(text)
	case len(text) > 0:
		err = p.headerLine(text)
	default:
		done, err = p.endHead()
	}
	return used, done, err
}

const versionPrefix = "HTTP/1."

// beginsStatusLine says whether text can be the beginning of a status line.
func beginsStatusLine(text []byte) bool {
	n := min(len(text), len(versionPrefix))
	return string(text[:n]) == versionPrefix[:n]
}

// statusLine reads "HTTP/1.1 200 OK".
func (p *parser) statusLine(text []byte) (err error) {
	if len(text) < len("HTTP/1.1 200") || text[8] != ' ' || !p.Version(text[:8]) {
		return errNoStatus
	}
	p.status, err = strconv.Atoi(string(text[9:12]))
	switch {
	case err != nil, p.status < 100, len(text) > 12 && text[12] != ' ':
		return errBadStatus
	case p.status == 101:
		return errUpgrade
	}
	return nil
}

// headerLine reads the headers that decide where the response ends.
func (p *parser) headerLine(text []byte) (err error) {
	if http1.IsBlank(text[0]) {
		// The line before goes on here.
		if p.unfoldable {
			return errFolded
		}
		return nil
	}
	colon := bytes.IndexByte(text, ':')
	if colon <= 0 || http1.IsBlank(text[colon-1]) {
		return errNoHeader
	}
	p.unfoldable, err = p.Field(text[:colon], text[colon+1:])
	return err
}

// endHead decides what follows the header (RFC 9112, section 6.3) and whether
// the response ends here.
func (p *parser) endHead() (done bool, err error) {
	switch {
	case p.status < 200:
		// An interim response: the real one follows.
		p.reset()
		p.interim = true
		return false, nil
	case p.Chunked && p.HTTP10:
		// Faulty framing, by RFC 9112, section 6.1.
		return false, errChunkedIn10
	case p.bodiless, p.status == 204, p.status == 304:
		return true, nil
	case !p.Chunked && !p.HasLength:
		p.state = untilClose
		return false, nil
	}
	p.state = inBody
	p.body.Begin(&p.Framing)
	return !p.Chunked && p.Length == 0, nil
}
