package cli

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"armrepro/bench/load"
)

// choiceValue is a flag that takes one of several words. what names them, as in
// "output format".
type choiceValue struct {
	value   *string
	what    string
	choices []string
	// alias is another word for one of the choices.
	alias map[string]string
}

func (v *choiceValue) String() string { return *v.value }
func (v *choiceValue) Type() string {
	return strings.ToUpper(v.what[strings.LastIndex(v.what, " ")+1:])
}

func (v *choiceValue) Set(s string) error {
	if word, ok := v.alias[s]; ok {
		s = word
	}
	if !slices.Contains(v.choices, s) {
		return fmt.Errorf("unknown %s %q; use %s", v.what, s, orList(v.choices))
	}
	*v.value = s
	return nil
}

// orList joins words as a sentence does: a, b or c.
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// countValue is a flag that takes wrk's counts: 200, 10k, 1M.
type countValue int

func (v *countValue) String() string { return strconv.Itoa(int(*v)) }
func (v *countValue) Type() string   { return "COUNT" }

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

// positiveValue is a countValue of at least 1.
type positiveValue countValue

func (v *positiveValue) String() string { return (*countValue)(v).String() }
func (v *positiveValue) Type() string   { return "COUNT" }

func (v *positiveValue) Set(s string) error {
	if err := (*countValue)(v).Set(s); err != nil {
		return err
	}
	if *v == 0 {
		return fmt.Errorf("%q is not a count above 0", s)
	}
	return nil
}

// timeValue is a flag that takes wrk's times (10, 10s, 2m, 1h) and Go's (1m30s,
// 500ms).
type timeValue time.Duration

func (v *timeValue) String() string { return shortDuration(time.Duration(*v)) }
func (v *timeValue) Type() string   { return "TIME" }

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
func (v *rateValue) Type() string   { return "RATE" }

func (v *rateValue) Set(s string) error {
	var count countValue
	f, err := strconv.ParseFloat(s, 64)
	if count.Set(s) == nil {
		f, err = float64(count), nil
	}
	if err != nil || !(f > 0 && f <= load.MaxRate) {
		return fmt.Errorf("%q is not a rate above 0 such as 500 or 10k", s)
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

func (v *sharesValue) Type() string { return "SHARE,…" }

func (v *sharesValue) Set(s string) error {
	*v = nil
	for part := range strings.SplitSeq(s, ",") {
		share, err := parseShare(part)
		if err != nil {
			return withPercents(s, err)
		}
		*v = append(*v, share)
	}
	return nil
}

// withPercents adds to err what s is with percent signs, where those are all that
// it lacks.
func withPercents(s string, err error) error {
	var parts []string
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSuffix(part, "%") + "%"
		if _, wrong := parseShare(part); wrong != nil {
			return err
		}
		parts = append(parts, part)
	}
	return &usageError{text: err.Error(), hint: didYouMean([]string{strings.Join(parts, ",")})}
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

func (v *runRate) Type() string { return "RATE" }

func (v *runRate) Set(s string) error {
	*v = runRate{}
	if strings.HasSuffix(s, "%") {
		var err error
		v.share, err = parseShare(s)
		return err
	}
	return v.rate.Set(s)
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
