package http1

import (
	"bytes"
	"strconv"
)

// Body reads a body of known length, or a chunked one up to and including its
// trailer section. The zero value is ready for a chunked one.
type Body struct {
	line  line
	state bodyState
	// remain is what is left of the body, or of the current chunk's data.
	remain uint64
	// overhead is how long the current line or trailer section is so far.
	overhead int
}

type bodyState uint8

const (
	chunkSize bodyState = iota
	chunkData
	chunkEnd
	chunkTrailer
	// wholeBody is one of known length.
	wholeBody
)

const (
	errChunkLine   Error = "chunk size line over 4 KiB"
	errTrailer     Error = "trailer section over 64 KiB"
	errChunkSize   Error = "chunk size is not a hexadecimal number below 2^63"
	errChunkLength Error = "chunk is longer or shorter than its size"
	// A bare LF here is how request smuggling begins (CVE-2025-22871).
	errChunkEnd Error = "line of a chunked body ends without CRLF"
)

// maxChunkLine bounds a chunk's size line with its extensions.
const maxChunkLine = 4096

// Begin makes ready for the body of a message that is chunked or has a length.
func (b *Body) Begin(f *Framing) {
	*b = Body{line: line{b.line.kept[:0]}}
	if !f.Chunked {
		b.state, b.remain = wholeBody, f.Length
	}
}

// Next takes the next piece of the body from data. It returns the payload in it
// (a part of data, possibly empty), how many bytes it took, and whether the
// body is complete.
func (b *Body) Next(data []byte) (payload []byte, used int, done bool, err error) {
	if b.state == chunkData || b.state == wholeBody {
		used = int(min(b.remain, uint64(len(data))))
		b.remain -= uint64(used)
		done = b.state == wholeBody && b.remain == 0
		if b.remain == 0 && !done {
			b.state = chunkEnd
		}
		return data[:used], used, done, nil
	}
	text, used, crlf, complete := b.line.next(data[:min(len(data), maxHeader+1)])
	b.overhead += used
	if err := b.checkOverhead(); err != nil || !complete {
		return nil, used, false, err
	}
	if !crlf {
		return nil, used, false, errChunkEnd
	}
	done, err = b.chunkLine(text)
	return nil, used, done, err
}

// chunkLine reads a line of a chunked body; done says that it is the last one.
func (b *Body) chunkLine(text []byte) (done bool, err error) {
	switch b.state {
	case chunkSize:
		// Extensions are skipped.
		size, _, _ := bytes.Cut(text, []byte{';'})
		b.remain, err = strconv.ParseUint(string(TrimSpace(size)), 16, 63)
		if err != nil || IsBlank(text[0]) {
			return false, errChunkSize
		}
		b.state, b.overhead = chunkData, 0
		if b.remain == 0 {
			b.state = chunkTrailer
		}
	case chunkEnd:
		if len(text) > 0 {
			return false, errChunkLength
		}
		b.state, b.overhead = chunkSize, 0
	}
	return b.state == chunkTrailer && len(text) == 0, nil
}

// checkOverhead bounds what is not payload, so that an endless line ends here.
func (b *Body) checkOverhead() error {
	switch {
	case b.state == chunkEnd && b.overhead > 2:
		return errChunkLength
	case b.state == chunkSize && b.overhead > maxChunkLine:
		return errChunkLine
	case b.overhead > maxHeader:
		return errTrailer
	}
	return nil
}
