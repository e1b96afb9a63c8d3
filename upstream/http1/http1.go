// Package http1 reads HTTP/1.1 framing (RFC 9112) from bytes that arrive in
// pieces of any size, keeping no more than one line.
package http1

import (
	"bytes"
	"strconv"
)

// Error says in words how a message breaks HTTP's framing rules.
type Error string

func (e Error) Error() string { return string(e) }

const (
	ErrLength     Error = "Content-Length is not a number below 2^63"
	ErrTwoLengths Error = "two Content-Length headers that differ"
	ErrCoding     Error = "Transfer-Encoding is not chunked, or given twice"

	errHeader Error = "header section over 64 KiB"
)

// maxHeader bounds a header or trailer section in bytes. net/http's server
// accepts 1 MB, nginx 32 KB; real responses stay below 8 KB.
const maxHeader = 64 << 10

// CutLine returns the line that data begins with, how many bytes it takes with
// its end, and whether that is CRLF rather than a bare LF. used is 0 if the line
// has no end.
func CutLine(data []byte) (text []byte, used int, crlf bool) {
	end := bytes.IndexByte(data, '\n')
	if end < 0 {
		return nil, 0, false
	}
	if end > 0 && data[end-1] == '\r' {
		return data[:end-1], end + 1, true
	}
	return data[:end], end + 1, false
}

// line collects one line over as many reads as it takes.
type line struct{ kept []byte }

// next takes a line, or a part of one, from data. It returns the line so far
// without its end, how many bytes of data belong to it, whether it ended with
// CRLF, and whether it is complete. A line that is complete in data is not
// copied. The line is valid until the next call.
func (l *line) next(data []byte) (text []byte, used int, crlf, complete bool) {
	text, used, crlf = CutLine(data)
	if used == 0 {
		l.kept = append(l.kept, data...)
		return l.kept, len(data), false, false
	}
	if len(l.kept) > 0 {
		whole := append(l.kept, data[:used]...)
		text, _, crlf = CutLine(whole)
		l.kept = whole[:0]
	}
	return text, used, crlf, true
}

// Head reads the lines of a start line and header section. The zero value is
// ready for use.
type Head struct {
	line line
	size int
}

// Next takes the next line from data. It returns the line so far without its
// end, how many bytes it took, and whether the line is complete; an empty
// complete line ends the section. The line is valid until the next call.
func (h *Head) Next(data []byte) (text []byte, used int, complete bool, err error) {
	text, used, _, complete = h.line.next(data[:min(len(data), maxHeader+1)])
	if h.size += used; h.size > maxHeader {
		return text, used, false, errHeader
	}
	return text, used, complete, nil
}

// Started says whether any byte has been read.
func (h *Head) Started() bool { return h.size > 0 }

// Reset makes ready for the next head.
func (h *Head) Reset() { h.line.kept, h.size = h.line.kept[:0], 0 }

// Framing is what a message's head says about where its body ends and whether
// its connection stays open. The zero value is that of an empty HTTP/1.1 head.
type Framing struct {
	HTTP10    bool
	Closes    bool
	Chunked   bool
	HasLength bool
	Length    uint64
	keeps     bool
}

// KeepAlive says whether the connection stays open after the message.
func (f *Framing) KeepAlive() bool { return !f.Closes && (!f.HTTP10 || f.keeps) }

// Version reads "HTTP/1.1"; false if it is no HTTP/1. A higher minor version
// reads as 1.1 (RFC 9110, section 2.5).
func (f *Framing) Version(b []byte) bool {
	const form = "HTTP/1.1"
	f.HTTP10 = string(b) == "HTTP/1.0"
	return len(b) == len(form) && string(b[:7]) == form[:7] && '0' <= b[7] && b[7] <= '9'
}

// Field reads a header field if it is one that decides, and says whether it is.
// Of codings it accepts chunked alone: no other has to be expected without TE.
func (f *Framing) Field(name, value []byte) (decides bool, err error) {
	switch {
	case EqualFold(name, "connection"):
		f.Closes = f.Closes || HasToken(value, "close")
		f.keeps = f.keeps || HasToken(value, "keep-alive")
	case EqualFold(name, "content-length"):
		n, ok := ParseLength(TrimSpace(value))
		switch {
		case !ok:
			return true, ErrLength
		case f.HasLength && n != f.Length:
			return true, ErrTwoLengths
		}
		f.HasLength, f.Length = true, n
	case EqualFold(name, "transfer-encoding"):
		if f.Chunked || !EqualFold(TrimSpace(value), "chunked") {
			return true, ErrCoding
		}
		f.Chunked = true
	default:
		return false, nil
	}
	return true, nil
}

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
	for more := true; more; {
		var item []byte
		item, list, more = bytes.Cut(list, []byte{','})
		if EqualFold(TrimSpace(item), token) {
			return true
		}
	}
	return false
}

// TrimSpace cuts the spaces and tabs around b.
func TrimSpace(b []byte) []byte {
	for len(b) > 0 && IsBlank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && IsBlank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

// IsBlank says whether c is a space or a tab.
func IsBlank(c byte) bool { return c == ' ' || c == '\t' }

// ParseLength reads the value of a Content-Length header: digits alone, below
// 2^63.
func ParseLength(b []byte) (uint64, bool) {
	n, err := strconv.ParseUint(string(b), 10, 63)
	return n, err == nil
}
