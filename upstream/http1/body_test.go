package http1

import (
	"bytes"
	"io"
	"net/http/httputil"
	"strings"
	"testing"
)

// readChunked feeds input to a Body in pieces of size bytes. It returns the
// payload, how many bytes were taken, and whether the body was complete.
func readChunked(input []byte, size int) (payload []byte, used int, done bool, err error) {
	var c Body
	for used < len(input) && !done && err == nil {
		piece := input[used:min(used+size, len(input))]
		for len(piece) > 0 && !done && err == nil {
			var p []byte
			var n int
			p, n, done, err = c.Next(piece)
			payload = append(payload, p...)
			piece = piece[n:]
			used += n
		}
	}
	return payload, used, done, err
}

func TestChunked(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	tests := []struct {
		name, input, payload string
		// rest is what has to be left of input.
		rest       string
		incomplete bool
		err        error
	}{
		{name: "empty body", input: "0\r\n\r\n"},
		{name: "leading zeros", input: strings.Repeat("0", 40) + "a\r\n1234567890\r\n" + strings.Repeat("0", 40) + "\r\n\r\n", payload: "1234567890"},
		{name: "one chunk", input: "a\r\n1234567890\r\n0\r\n\r\n", payload: "1234567890"},
		{name: "chunks", input: "1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", payload: "abc"},
		{name: "what follows is left", input: "1\r\na\r\n0\r\n\r\nHTTP/1.1", payload: "a", rest: "HTTP/1.1"},
		{name: "upper and lower case", input: "A\r\n1234567890\r\n00a\r\n1234567890\r\n0\r\n\r\n", payload: "12345678901234567890"},
		{name: "CRLF in payload", input: "4\r\n\r\n\r\n\r\n0\r\n\r\n", payload: "\r\n\r\n"},
		{name: "zeros before the size", input: "0000000000000001\r\na\r\n000\r\n\r\n", payload: "a"},
		{name: "extension", input: "1;a=b\r\na\r\n0;c=\"d\"\r\n\r\n", payload: "a"},
		{name: "long extension", input: "1;" + long + "\r\na\r\n0\r\n\r\n", payload: "a"},
		{name: "space after size", input: "1 \t\r\na\r\n0 ;x\r\n\r\n", payload: "a"},
		{name: "trailer", input: "1\r\na\r\n0\r\nA: b\r\nC: d\r\n\r\nrest", payload: "a", rest: "rest"},
		{name: "long trailer", input: "0\r\nA: " + long + "\r\n\r\n"},

		{name: "nothing", input: "", incomplete: true},
		{name: "no size end", input: "1", incomplete: true},
		{name: "no payload", input: "1\r\n", incomplete: true},
		{name: "no chunk end", input: "1\r\na\r", payload: "a", incomplete: true},
		{name: "no last chunk", input: "1\r\na\r\n", payload: "a", incomplete: true},
		{name: "no trailer end", input: "0\r\nA: b\r\n", incomplete: true},
		{name: "largest size", input: "7fffffffffffffff\r\na", payload: "a", incomplete: true},

		{name: "size overflows", input: "8000000000000000\r\na", err: errChunkSize},
		{name: "size of 64 bits", input: "ffffffffffffffff\r\na", err: errChunkSize},
		{name: "size of 68 bits", input: "10000000000000001\r\na", err: errChunkSize},
		{name: "no size", input: "\r\na\r\n", err: errChunkSize},
		{name: "extension without size", input: ";a\r\n", err: errChunkSize},
		{name: "negative", input: "-1\r\na\r\n", err: errChunkSize},
		{name: "prefix", input: "0x1\r\na\r\n", err: errChunkSize},
		{name: "space before size", input: " 1\r\na\r\n", err: errChunkSize},
		{name: "space in size", input: "1 1\r\na\r\n", err: errChunkSize},
		{name: "not hexadecimal", input: "g\r\n", err: errChunkSize},
		{name: "bare LF after size", input: "1\na\r\n0\r\n\r\n", err: errChunkEnd},
		{name: "bare LF after extension", input: "1;" + long + "\na\r\n", err: errChunkEnd},
		{name: "bare LF after chunk", input: "1\r\na\n0\r\n\r\n", payload: "a", err: errChunkEnd},
		{name: "bare LF after trailer", input: "0\r\nA: b\n\r\n", err: errChunkEnd},
		{name: "bare LF at the end", input: "0\r\n\n", err: errChunkEnd},
		{name: "chunk longer than its size", input: "1\r\nab\r\n", payload: "a", err: errChunkLength},
		{name: "chunk shorter than its size", input: "5\r\nab\r\n0\r\n\r\n", payload: "ab\r\n0", err: errChunkSize},
		{name: "endless size line", input: "1;" + strings.Repeat("x", maxChunkLine), err: errChunkLine},
		{name: "endless zeros", input: strings.Repeat("0", maxChunkLine+1), err: errChunkLine},
		{name: "endless trailer line", input: "0\r\n" + strings.Repeat("x", maxHeader+1), err: errTrailer},
		{name: "endless trailer", input: "0\r\n" + strings.Repeat("A: b\r\n", maxHeader/6+1), err: errTrailer},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sizes := []int{len(tt.input) + 1, 1, 2, 3, 7, 255, 256, 257}
			for _, size := range sizes {
				payload, used, done, err := readChunked([]byte(tt.input), size)
				if err != tt.err {
					t.Fatalf("in pieces of %d: error %v, want %v", size, err, tt.err)
				}
				if string(payload) != tt.payload {
					t.Errorf("in pieces of %d: payload %q, want %q", size, payload, tt.payload)
				}
				if err != nil {
					continue
				}
				if done == tt.incomplete {
					t.Errorf("in pieces of %d: done is %v", size, done)
				}
				if rest := tt.input[used:]; rest != tt.rest {
					t.Errorf("in pieces of %d: left %q, want %q", size, rest, tt.rest)
				}
			}
		})
	}
}

// TestChunkedEverySplit cuts one body in two at every byte.
func TestChunkedEverySplit(t *testing.T) {
	t.Parallel()
	input := []byte("5;" + strings.Repeat("e", 400) + "\r\nhello\r\n6\r\n world\r\n0\r\nT: " + strings.Repeat("t", 400) + "\r\n\r\n")
	for at := range input {
		var c Body
		var payload []byte
		var done bool
		for _, piece := range [][]byte{input[:at], input[at:]} {
			for len(piece) > 0 {
				p, n, d, err := c.Next(piece)
				if err != nil {
					t.Fatalf("split at %d: %v", at, err)
				}
				payload, piece, done = append(payload, p...), piece[n:], d
			}
		}
		if string(payload) != "hello world" || !done {
			t.Fatalf("split at %d: payload %q, done %v", at, payload, done)
		}
	}
}

// FuzzChunked compares with net/http's reader, in pieces of any size.
func FuzzChunked(f *testing.F) {
	for _, input := range []string{
		"a\r\n1234567890\r\n0\r\n\r\n", "1;x=y\r\na\r\n0\r\nT: v\r\n\r\n", "ffffffffffffffff\r\n", "1\na\n0\n\n",
		"5\r\nhello\r\n5;" + strings.Repeat("e", 300) + "\r\nworld\r\n0\r\n\r\n", "0\r\n\r\nextra", "3 \r\nabc\r\n0\r\n\r\n",
	} {
		f.Add([]byte(input), uint8(1))
	}
	f.Fuzz(func(t *testing.T, input []byte, size uint8) {
		payload, used, done, err := readChunked(input, len(input)+1)
		payload2, used2, done2, err2 := readChunked(input, int(size)+1)
		if err != err2 || done != done2 || err == nil && used != used2 {
			t.Fatalf("whole: used %d, done %v, %v; in pieces of %d: used %d, done %v, %v",
				used, done, err, int(size)+1, used2, done2, err2)
		}
		if !bytes.Equal(payload, payload2) {
			t.Fatalf("whole: %q; in pieces of %d: %q", payload, int(size)+1, payload2)
		}
		theirs, theirErr := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(input)))
		if done && theirErr == nil && !bytes.Equal(payload, theirs) {
			t.Fatalf("payload %q, net/http reads %q", payload, theirs)
		}
	})
}
