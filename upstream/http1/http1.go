// Package http1 reads HTTP/1.1 framing (RFC 9112) from bytes that arrive in
// pieces of any size, keeping no more than one line.
package http1

import "bytes"

// Error says in words how a message breaks HTTP's framing rules.
type Error string

func (e Error) Error() string { return string(e) }

const errHeader Error = "header section over 64 KiB"

const (
	// maxHeader bounds a header or trailer section. net/http's server
	// accepts 1 MB, nginx 32 KB; real answers stay below 8 KB.
	maxHeader = 64 << 10
	// maxLine is how much of a line that is split over reads is kept. No
	// header that decides the framing is longer.
	maxLine = 256
)

// line collects one line over as many reads as it takes.
type line struct {
	kept [maxLine]byte
	n    int32
	// cut says that the line was longer than what was kept.
	cut bool
	// cr says that the last byte so far was a CR.
	cr bool
}

// next takes a line from data. It returns the line without its end, how many
// bytes of data belong to it, whether it ended with CRLF rather than a bare LF,
// and whether it is complete. A line that is complete in data is not copied.
// One that is longer than maxLine is cut to that in either case, so that the
// same bytes mean the same however they arrive.
func (l *line) next(data []byte) (text []byte, used int, crlf, complete bool) {
	end := bytes.IndexByte(data, '\n')
	if end < 0 {
		l.keep(data)
		return nil, len(data), false, false
	}
	text, used = data[:end], end+1
	if l.n == 0 && end <= maxLine {
		crlf = end > 0 && text[end-1] == '\r'
	} else {
		l.keep(text)
		text, crlf = l.kept[:l.n], l.cr
	}
	if crlf && !l.cut {
		text = text[:len(text)-1]
	}
	return text, used, crlf, true
}

func (l *line) keep(data []byte) {
	if len(data) == 0 {
		return
	}
	n := copy(l.kept[l.n:], data)
	l.n += int32(n)
	l.cut = l.cut || n < len(data)
	l.cr = data[len(data)-1] == '\r'
}

// reset forgets the line that next completed.
func (l *line) reset() { l.n, l.cut, l.cr = 0, false, false }

// EqualFold says whether b is the lower-case ASCII string s, whatever its case.
func EqualFold(b []byte, s string) bool {
	if len(b) != len(s) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != s[i] {
			return false
		}
	}
	return true
}

// HasToken says whether the comma-separated list holds token, which is in lower
// case.
func HasToken(list []byte, token string) bool {
	for len(list) > 0 {
		item := list
		if i := bytes.IndexByte(list, ','); i >= 0 {
			item, list = list[:i], list[i+1:]
		} else {
			list = nil
		}
		if EqualFold(TrimSpace(item), token) {
			return true
		}
	}
	return false
}

// TrimSpace cuts the spaces and tabs around b.
func TrimSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	return trimRight(b)
}

func trimRight(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// ParseLength reads the value of a Content-Length header: digits alone, below
// 2^63.
func ParseLength(b []byte) (uint64, bool) {
	if len(b) == 0 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		if c < '0' || c > '9' || n > (1<<63-1)/10 {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, n < 1<<63
}

// Head reads the lines of a start line and header section. The zero value is
// ready for use.
type Head struct {
	line line
	size int32
	// cut says that the line that Next returned last is only its beginning.
	cut bool
}

// Next takes the next line from data. It returns the line without its end, how
// many bytes it took, and whether the line is complete; an empty complete line
// ends the section. The line is valid until the next call.
func (h *Head) Next(data []byte) (text []byte, used int, complete bool, err error) {
	text, used, _, complete = h.line.next(data)
	h.size += int32(min(used, maxHeader+1))
	if h.size > maxHeader {
		return nil, used, false, errHeader
	}
	if complete {
		h.cut = h.line.cut
		h.line.reset()
	}
	return text, used, complete, nil
}

// Cut says whether the line that Next returned last is only the beginning of a
// longer one.
func (h *Head) Cut() bool { return h.cut }

// Partial is what has been read of a line that is not complete, at most its first
// 256 bytes.
func (h *Head) Partial() []byte { return h.line.kept[:h.line.n] }

// Started says whether any byte has been read.
func (h *Head) Started() bool { return h.size > 0 }
