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
	f, err := strconv.ParseFloat(s, 64)
	if count.Set(s) == nil {
		f, err = float64(count), nil
	}
	if err != nil || !(f >= 0 && f <= load.MaxRate) {
		return fmt.Errorf("%q is not a rate such as 500 or 10k", s)
	}
	*v = rateValue(f)
	return nil
}

// sharesValue is a flag that takes shares of a maximum: 10%,25%.
type sharesValue []float64

func (v *sharesValue) String() string {
	var parts []string
	for _, share := range *v {
		parts = append(parts, strconv.FormatFloat(100*share, 'f', -1, 64)+"%")
	}
	return strings.Join(parts, ",")
}

func (v *sharesValue) Type() string { return "shares" }

func (v *sharesValue) Set(s string) error {
	*v = nil
	for part := range strings.SplitSeq(s, ",") {
		share, err := parseShare(part)
		if err != nil {
			return err
		}
		*v = append(*v, share)
	}
	return nil
}

// maxShare bounds a share of a maximum: beyond it a queue only grows faster.
const maxShare = 10

// parseShare reads 75% as 0.75.
func parseShare(s string) (float64, error) {
	number, ok := strings.CutSuffix(s, "%")
	percent, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(percent > 0 && percent <= 100*maxShare) {
		return 0, fmt.Errorf("%q is not a share such as 75%%", s)
	}
	return percent / 100, nil
}

// runRate is a flag that takes a rate, or a share of the maximum.
type runRate struct {
	rate  rateValue
	share float64
}

func (v *runRate) String() string {
	if v.share > 0 {
		return (&sharesValue{v.share}).String()
	}
	return v.rate.String()
}

func (v *runRate) Type() string { return "rate" }

func (v *runRate) Set(s string) error {
	*v = runRate{}
	if strings.HasSuffix(s, "%") {
		var err error
		v.share, err = parseShare(s)
		return err
	}
	return v.rate.Set(s)
}

// addLoadFlags adds the flags that run and load share, with wrk's names.
func addLoadFlags(fs *pflag.FlagSet, cfg *load.Config, threadsUsage string) {
	fs.VarP((*timeValue)(&cfg.Duration), "duration", "d", "how long each run lasts")
	fs.VarP((*countValue)(&cfg.Connections), "connections", "c", "connections to keep open")
	fs.VarP((*countValue)(&cfg.Threads), "threads", "t", threadsUsage)
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
