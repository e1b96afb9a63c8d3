package http1

import "bytes"

// Chunked reads a chunked body up to and including its trailer section. The
// zero value is ready for use.
type Chunked struct {
	line  line
	state chunkState
	// remain is what is left of the current chunk's data.
	remain uint64
	// overhead is how long the current line or trailer section is so far.
	overhead int32
}

type chunkState uint8

const (
	chunkSize chunkState = iota
	chunkData
	chunkEnd
	chunkTrailer
)

const (
	errChunkLine   Error = "chunk size line over 4 KiB"
	errTrailer     Error = "trailer section over 64 KiB"
	errChunkSize   Error = "chunk size that is no hexadecimal number below 2^63"
	errChunkLength Error = "chunk that is longer or shorter than its size"
	// A bare LF here is how request smuggling begins (CVE-2025-22871).
	errChunkEnd Error = "line of a chunked body that ends without CRLF"
)

// maxChunkLine bounds a chunk's size line with its extensions.
const maxChunkLine = 4096

// Next takes the next piece of the body from data. It returns the payload in it
// (a part of data, possibly empty), how many bytes it took, and whether the
// body is complete.
func (c *Chunked) Next(data []byte) (payload []byte, used int, done bool, err error) {
	if c.state == chunkData {
		n := int(min(c.remain, uint64(len(data))))
		if c.remain -= uint64(n); c.remain == 0 {
			c.state = chunkEnd
		}
		return data[:n], n, false, nil
	}
	text, used, crlf, complete := c.line.next(data)
	c.overhead += int32(min(used, maxHeader+1))
	if err := c.checkOverhead(); err != nil || !complete {
		return nil, used, false, err
	}
	if !crlf {
		return nil, used, false, errChunkEnd
	}
	switch c.state {
	case chunkSize:
		size, ok := parseChunkSize(text)
		if !ok {
			return nil, used, false, errChunkSize
		}
		c.remain, c.state, c.overhead = size, chunkData, 0
		if size == 0 {
			c.state = chunkTrailer
		}
	case chunkEnd:
		if len(text) > 0 {
			return nil, used, false, errChunkLength
		}
		c.state, c.overhead = chunkSize, 0
	case chunkTrailer:
		done = len(text) == 0 && !c.line.cut
	}
	c.line.reset()
	return nil, used, done, nil
}

// checkOverhead bounds what is not payload, so that an endless line ends here.
func (c *Chunked) checkOverhead() error {
	switch {
	case c.state == chunkEnd && c.overhead > 2:
		return errChunkLength
	case c.state == chunkSize && c.overhead > maxChunkLine:
		return errChunkLine
	case c.overhead > maxHeader:
		return errTrailer
	}
	return nil
}

// parseChunkSize reads the hexadecimal size that a chunk line begins with and
// skips its extensions.
func parseChunkSize(text []byte) (uint64, bool) {
	if i := bytes.IndexByte(text, ';'); i >= 0 {
		text = text[:i]
	}
	text = trimRight(text)
	if len(text) == 0 {
		return 0, false
	}
	// 16 digits fit; those that are 0 in front of them say nothing.
	const most = 16
	for len(text) > most && text[0] == '0' {
		text = text[1:]
	}
	if len(text) > most {
		return 0, false
	}
	var n uint64
	for _, c := range text {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | uint64(c)
	}
	return n, n < 1<<63
}
