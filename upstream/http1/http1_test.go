package http1

import (
	"strconv"
	"strings"
	"testing"
)

// readHead feeds input to a Head in pieces of size bytes. It returns the lines
// and how many bytes were taken.
func readHead(input []byte, size int) (lines []string, used int, err error) {
	var h Head
	for used < len(input) {
		text, n, complete, err := h.Next(input[used:min(used+size, len(input))])
		if used += n; err != nil {
			return lines, used, err
		}
		if !complete {
			continue
		}
		lines = append(lines, string(text))
		if len(text) == 0 {
			break
		}
	}
	return lines, used, nil
}

func TestHead(t *testing.T) {
	t.Parallel()
	a := func(n int) string { return strings.Repeat("a", n) }
	tests := []struct {
		name, input string
		lines       []string
		rest        string
		err         error
	}{
		{name: "CRLF", input: "A\r\nB: c\r\n\r\nrest", lines: []string{"A", "B: c", ""}, rest: "rest"},
		{name: "LF", input: "A\nB: c\n\nrest", lines: []string{"A", "B: c", ""}, rest: "rest"},
		{name: "incomplete", input: "A\r\nB: c\r", lines: []string{"A"}},
		{name: "bare CR", input: "A\rB\r\r\n\r\n", lines: []string{"A\rB\r", ""}},
		{name: "long", input: a(1000) + "\n" + a(2000) + "\r\nb\r\n", lines: []string{a(1000), a(2000), "b"}},
		{name: "largest", input: a(maxHeader-2) + "\n\n", lines: []string{a(maxHeader - 2), ""}},
		{name: "too large", input: a(maxHeader-1) + "\n\n", lines: []string{a(maxHeader - 1)}, err: errHeader},
		{name: "endless line", input: a(maxHeader + 1), err: errHeader},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{len(tt.input) + 1, 1, 2, 3, 100, 1000, 1001, 1002} {
				lines, used, err := readHead([]byte(tt.input), size)
				if err != tt.err {
					t.Fatalf("in pieces of %d: error %v, want %v", size, err, tt.err)
				}
				if strings.Join(lines, "|") != strings.Join(tt.lines, "|") {
					t.Errorf("in pieces of %d: %q, want %q", size, lines, tt.lines)
				}
				if err == nil && tt.input[used:] != tt.rest {
					t.Errorf("in pieces of %d: left %q, want %q", size, tt.input[used:], tt.rest)
				}
			}
		})
	}
}

// TestErrorsRepeat makes sure that reading on after an error finds an error
// again, however often.
func TestErrorsRepeat(t *testing.T) {
	t.Parallel()
	piece := []byte(strings.Repeat("x", maxHeader))
	var h Head
	var c Body
	for i := range 3 {
		_, _, _, headErr := h.Next(piece)
		_, _, _, chunkErr := c.Next(piece)
		if i > 0 && headErr != errHeader || chunkErr != errChunkLine {
			t.Errorf("after %d pieces: %v and %v", i+1, headErr, chunkErr)
		}
	}
}

func TestStarted(t *testing.T) {
	t.Parallel()
	var h Head
	if h.Started() {
		t.Error("started before the first byte")
	}
	if h.Next([]byte("H")); !h.Started() {
		t.Error("not started after the first byte")
	}
}

func TestHasToken(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]bool{
		"close": true, "Close": true, " close ": true, "keep-alive, close": true, "close,keep-alive": true,
		"a,\tCLOSE\t,b": true, ",,close": true,
		"": false, "closed": false, "clos": false, "close keep-alive": false, "\"close\"": false, ",": false,
	} {
		if got := HasToken([]byte(list), "close"); got != want {
			t.Errorf("HasToken(%q) = %v", list, got)
		}
	}
}

func TestEqualFold(t *testing.T) {
	t.Parallel()
	for b, want := range map[string]bool{
		"content-length": true, "Content-Length": true, "CONTENT-LENGTH": true,
		"content_length": false, "content-lengtH ": false, "": false,
		// Setting bit 5 turns a CR into a minus sign.
		"content\rlength": false,
	} {
		if got := EqualFold([]byte(b), "content-length"); got != want {
			t.Errorf("EqualFold(%q) = %v", b, got)
		}
	}
}

func TestParseLength(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want uint64
		ok   bool
	}{
		{"0", 0, true},
		{"10", 10, true},
		{"007", 7, true},
		{"9223372036854775807", 1<<63 - 1, true},
		{"0000000000000000000009223372036854775807", 1<<63 - 1, true},
		{"9223372036854775808", 0, false},
		{"9223372036854775809", 0, false},
		{"18446744073709551616", 0, false},
		{"99999999999999999999999999", 0, false},
		{"", 0, false},
		{"-1", 0, false},
		{"+1", 0, false},
		{"1 ", 0, false},
		{"0x1", 0, false},
		{"1,1", 0, false},
		{"1_0", 0, false},
	}
	for _, tt := range tests {
		n, ok := ParseLength([]byte(tt.text))
		if ok != tt.ok || ok && n != tt.want {
			t.Errorf("ParseLength(%q) = %d, %v; want %d, %v", tt.text, n, ok, tt.want, tt.ok)
		}
	}
}

// FuzzParseLength compares with strconv, which takes the same digits.
func FuzzParseLength(f *testing.F) {
	for _, s := range []string{"0", "10", "9223372036854775807", "9223372036854775808", "-1", "007", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, ok := ParseLength([]byte(s))
		want, err := strconv.ParseUint(s, 10, 63)
		if s != "" && s[0] == '+' {
			return
		}
		if ok != (err == nil) || ok && n != want {
			t.Errorf("ParseLength(%q) = %d, %v; strconv reads %d, %v", s, n, ok, want, err)
		}
	})
}

// FuzzHead checks that the pieces in which a head arrives do not matter.
func FuzzHead(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nA: b\r\n\r\nrest", "A\n\n", "\r\n", strings.Repeat("a", 255) + "\r\n\r\n",
		strings.Repeat("a", 257) + "\r\n\r\n", strings.Repeat("a\r", 200) + "\n\n",
	} {
		f.Add([]byte(s), uint8(0))
	}
	f.Fuzz(func(t *testing.T, input []byte, size uint8) {
		lines, used, err := readHead(input, len(input)+1)
		lines2, used2, err2 := readHead(input, int(size)+1)
		if err != err2 || err == nil && used != used2 || strings.Join(lines, "|") != strings.Join(lines2, "|") {
			t.Fatalf("whole: %q, used %d, %v; in pieces of %d: %q, used %d, %v",
				lines, used, err, int(size)+1, lines2, used2, err2)
		}
	})
}
