package load

import (
	"bytes"

	"armrepro/upstream/http1"
)

// parser reads one HTTP/1.1 response after the other from bytes that arrive in
// pieces of any size. It allocates nothing.
type parser struct {
	head http1.Head
	body http1.Chunked
	// remain is what is left of a body of known length.
	remain uint64
	state  parserState

	status int
	// keepAlive says, once the header is complete, whether the connection
	// stays open after this response.
	keepAlive bool

	// interim says that a 1xx answer has been read and that the real one is
	// still to come.
	interim bool
	// unfoldable says that the last line must not be continued by the next
	// (obs-fold), since it was read for good.
	unfoldable bool

	http10    bool
	closes    bool
	keeps     bool
	chunked   bool
	hasLength bool
	length    uint64
	// bodiless says that the request's method gets no body (HEAD).
	bodiless bool
}

// How an answer may break HTTP, in words.
const (
	errNoStatus    = http1.Error("no HTTP/1 status line")
	errControl     = http1.Error("zero byte or bare CR in a header")
	errNoHeader    = http1.Error("header line without a name and a colon")
	errFolded      = http1.Error("folded header that affects framing")
	errConnection  = http1.Error("Connection header over 256 bytes")
	errLength      = http1.Error("Content-Length that is no number below 2^63")
	errTwoLengths  = http1.Error("two Content-Length headers that differ")
	errCoding      = http1.Error("Transfer-Encoding other than chunked, once")
	errChunkedIn10 = http1.Error("chunked answer in HTTP/1.0")
	errBadStatus   = http1.Error("status that is no number from 100 on")
	errUpgrade     = http1.Error("101 without a request to upgrade")
)

type parserState uint8

const (
	inStatusLine parserState = iota
	inHeader
	inLength
	inChunks
	untilClose
)

// reset makes ready for the next response.
func (p *parser) reset() {
	*p = parser{bodiless: p.bodiless}
}

// started says whether a byte of the response has been read.
func (p *parser) started() bool {
	return p.state != inStatusLine || p.head.Started() || p.interim
}

// feed takes bytes of a response from data. It returns how many it took and
// whether the response is complete; it takes none beyond it.
func (p *parser) feed(data []byte) (used int, done bool, err error) {
	for used < len(data) && !done && err == nil {
		var n int
		switch p.state {
		case inStatusLine, inHeader:
			n, done, err = p.feedHead(data[used:])
		case inLength:
			n = int(min(p.remain, uint64(len(data)-used)))
			p.remain -= uint64(n)
			done = p.remain == 0
		case inChunks:
			_, n, done, err = p.body.Next(data[used:])
		case untilClose:
			n = len(data) - used
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
	begun := text
	if !complete {
		begun = p.head.Partial() // It may never end.
	}
	if p.state == inStatusLine && !beginsStatusLine(begun) {
		return used, false, errNoStatus
	}
	if err != nil || !complete {
		return used, false, err
	}
	// RFC 9110, section 5.5, forbids both.
	if bytes.IndexByte(text, 0) >= 0 || bytes.IndexByte(text, '\r') >= 0 {
		return used, false, errControl
	}
	switch {
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

// statusLine reads "HTTP/1.1 200 OK". A higher minor version reads as 1.1 (RFC
// 9110, section 2.5).
func (p *parser) statusLine(text []byte) error {
	if len(text) < len("HTTP/1.1 200") || !beginsStatusLine(text) || text[8] != ' ' || !isDigit(text[7]) {
		return errNoStatus
	}
	p.http10 = text[7] == '0'
	for _, c := range text[9:12] {
		if !isDigit(c) {
			return errBadStatus
		}
		p.status = p.status*10 + int(c-'0')
	}
	switch {
	case p.status < 100, len(text) > 12 && text[12] != ' ':
		return errBadStatus
	case p.status == 101:
		return errUpgrade
	}
	return nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// headerLine reads the headers that decide where the response ends.
func (p *parser) headerLine(text []byte) error {
	if isBlank(text[0]) {
		// The line before goes on here.
		if p.unfoldable {
			return errFolded
		}
		return nil
	}
	p.unfoldable = false
	colon := bytes.IndexByte(text, ':')
	if colon < 0 && p.head.Cut() {
		return nil // No header that matters has a name this long.
	}
	if colon <= 0 || isBlank(text[colon-1]) {
		return errNoHeader
	}
	name := text[:colon]
	switch len(name) {
	case len("connection"):
		if http1.EqualFold(name, "connection") {
			return p.connection(text[colon+1:])
		}
	case len("content-length"):
		if http1.EqualFold(name, "content-length") {
			return p.contentLength(text[colon+1:])
		}
	case len("transfer-encoding"):
		if http1.EqualFold(name, "transfer-encoding") {
			return p.transferEncoding(text[colon+1:])
		}
	}
	return nil
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func (p *parser) connection(value []byte) error {
	p.unfoldable = true
	if p.head.Cut() {
		return errConnection
	}
	p.closes = p.closes || http1.HasToken(value, "close")
	p.keeps = p.keeps || http1.HasToken(value, "keep-alive")
	return nil
}

func (p *parser) contentLength(value []byte) error {
	n, ok := http1.ParseLength(http1.TrimSpace(value))
	if !ok || p.head.Cut() {
		return errLength
	}
	if p.hasLength && n != p.length {
		return errTwoLengths
	}
	p.unfoldable, p.hasLength, p.length = true, true, n
	return nil
}

// transferEncoding accepts chunked alone, the only coding that a client which
// announces none with TE has to expect.
func (p *parser) transferEncoding(value []byte) error {
	if p.chunked || p.head.Cut() || !http1.EqualFold(http1.TrimSpace(value), "chunked") {
		return errCoding
	}
	p.unfoldable, p.chunked = true, true
	return nil
}

// endHead decides what follows the header (RFC 9112, section 6.3) and whether
// the response ends here.
func (p *parser) endHead() (done bool, err error) {
	if p.status < 200 {
		// An interim answer: the real one follows.
		p.reset()
		p.interim = true
		return false, nil
	}
	if p.chunked && p.http10 {
		// Faulty framing, by RFC 9112, section 6.1.
		return false, errChunkedIn10
	}
	p.keepAlive = !p.closes && (!p.http10 || p.keeps)
	switch {
	case p.bodiless, p.status == 204, p.status == 304:
		return true, nil
	case p.chunked:
		p.state = inChunks
	case p.hasLength:
		p.state, p.remain = inLength, p.length
		return p.length == 0, nil
	default:
		p.state, p.keepAlive = untilClose, false
	}
	return false, nil
}
