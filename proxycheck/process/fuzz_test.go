package process

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// fit fails unless s may go to a terminal and into JSON.
func fit(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("%q is not fit to print", s)
	}
}

func FuzzCPUList(f *testing.F) {
	for _, s := range []string{"", "0", "0-3,8", "3-1", "0-8191", "0-8192", "1,,2", " 1 , 2 ", "0-8191,0-8191,0-8191"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		cpus, err := ParseCPUList(s)
		if err != nil {
			fit(t, err.Error())
			return
		}
		if !slices.IsSorted(cpus) || len(slices.Compact(slices.Clone(cpus))) != len(cpus) || len(cpus) > MaxCPUs {
			t.Errorf("ParseCPUList(%q) = %v", s, cpus)
		}
		again, err := ParseCPUList(FormatCPUList(cpus))
		if err != nil || !slices.Equal(cpus, again) {
			t.Errorf("%v reads %v, %v after formatting", cpus, again, err)
		}
	})
}

func FuzzStat(f *testing.F) {
	f.Add([]byte("42 (a (b) c) S 1 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 99 1 1"))
	f.Add([]byte("42 () Z"))
	f.Add([]byte(")("))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseStat(b)
		if err != nil {
			return
		}
		fit(t, s.Name)
		if !unicode.IsLetter(rune(s.state)) || s.Used < 0 || s.Ended < 0 || s.Used+s.Ended < 0 {
			t.Errorf("%+v", s)
		}
	})
}

func FuzzListeners(f *testing.F) {
	f.Add([]byte(tcpTable), 1980)
	f.Add([]byte("0: 0:FFFFF 0:0 0A 0 0 0 0 0 1\n0: 0:-1 0:0 0A 0 0 0 0 0 1\n"), 0)
	f.Fuzz(func(t *testing.T, b []byte, port int) {
		inodes := map[string]bool{}
		_ = parseListeners(strings.NewReader(string(b)), port, inodes)
		if port < 0 || port > math.MaxUint16 {
			if len(inodes) != 0 {
				t.Errorf("port %d has listeners %v", port, inodes)
			}
		}
	})
}

// FuzzRunDelay reads what a task waited for a CPU.
func FuzzRunDelay(f *testing.F) {
	f.Add("1 2 3")
	f.Add("1 -2 3")
	f.Fuzz(func(t *testing.T, text string) {
		if _, d, err := parseRunDelay(text); d < 0 || err != nil && d != 0 {
			t.Error(fmt.Sprint(d, err))
		}
	})
}
