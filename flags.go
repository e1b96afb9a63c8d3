package main

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"armrepro/bench/load"
)

// countValue is a flag that takes wrk's counts: 200, 10k, 1M.
type countValue int

func (v *countValue) String() string { return strconv.Itoa(int(*v)) }
func (v *countValue) Type() string   { return "count" }

func (v *countValue) Set(s string) error {
	digits, factor := s, 1
	if s != "" {
		if i := strings.IndexByte("kmg", s[len(s)-1]|0x20); i >= 0 {
			digits, factor = s[:len(s)-1], []int{1e3, 1e6, 1e9}[i]
		}
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || int(n) > math.MaxInt32/factor {
		return fmt.Errorf("%q is not a count such as 200 or 10k", s)
	}
	*v = countValue(int(n) * factor)
	return nil
}

// timeValue is a flag that takes wrk's times (10, 10s, 2m, 1h) and Go's (1m30s,
// 500ms).
type timeValue time.Duration

func (v *timeValue) String() string { return shortDuration(time.Duration(*v)) }
func (v *timeValue) Type() string   { return "time" }

func (v *timeValue) Set(s string) error {
	if n, err := strconv.ParseUint(s, 10, 31); err == nil {
		*v = timeValue(time.Duration(n) * time.Second)
		return nil
	}
	d, err := time.ParseDuration(strings.ToLower(s))
	if err != nil || d < 0 {
		return fmt.Errorf("%q is not a time such as 10s or 1m", s)
	}
	*v = timeValue(d)
	return nil
}

// shortDuration prints 1m0s as 1m.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// rateValue is a flag that takes requests a second: 5000, 12.5, 10k.
type rateValue float64

func (v *rateValue) String() string { return strconv.FormatFloat(float64(*v), 'f', -1, 64) }
func (v *rateValue) Type() string   { return "rate" }

func (v *rateValue) Set(s string) error {
	var count countValue
	if count.Set(s) == nil {
		*v = rateValue(count)
		return nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0 && f <= load.MaxRate) {
		return fmt.Errorf("%q is not a rate such as 500 or 10k", s)
	}
	*v = rateValue(f)
	return nil
}

// addLoadFlags adds the flags that run and load share, with wrk's names.
func addLoadFlags(fs *pflag.FlagSet, cfg *load.Config) {
	fs.VarP((*timeValue)(&cfg.Duration), "duration", "d", "how long each run lasts")
	fs.VarP((*countValue)(&cfg.Connections), "connections", "c", "connections to keep open")
	fs.VarP((*countValue)(&cfg.Threads), "threads", "t", "threads that share the connections")
	fs.VarP((*timeValue)(&cfg.Timeout), "timeout", "T", "how long an answer may take before it counts as a timeout")
}

// parseHeaders reads the -H flags.
func parseHeaders(lines []string) (http.Header, error) {
	header := http.Header{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" {
			return nil, usagef("-H: %q is not of the form \"Name: value\"", line)
		}
		header[name] = append(header[name], strings.TrimSpace(value))
	}
	return header, nil
}
