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
	"armrepro/proxycheck"
)

// value is a flag that read parses and show prints; word is its name in the help.
type value[T any] struct {
	to   *T
	word string
	read func(string) (T, error)
	show func(T) string
}

func (v *value[T]) Type() string   { return v.word }
func (v *value[T]) String() string { return v.show(*v.to) }

func (v *value[T]) Set(s string) error {
	read, err := v.read(s)
	if err == nil {
		*v.to = read
	}
	return err
}

// filled is a flag that takes any text except the empty one, which is what an
// unset variable of a shell leaves.
func filled(to *string, word string) *value[string] {
	return &value[string]{to, word, func(s string) (string, error) {
		if s == "" {
			return "", fmt.Errorf("no %s given", word)
		}
		return s, nil
	}, strings.Clone}
}

// choice is a flag that takes one of several words. what names them, as in
// "output format".
type choice struct {
	value[string]
	choices []string
}

func newChoice(to *string, what string, choices ...string) *choice {
	return &choice{value[string]{
		to: to, word: strings.ToUpper(what[strings.LastIndex(what, " ")+1:]), show: strings.Clone,
		read: func(s string) (string, error) {
			if !slices.Contains(choices, s) {
				return "", fmt.Errorf("unknown %s %q; use %s", what, s, orList(choices))
			}
			return s, nil
		},
	}, choices}
}

// orList joins words as a sentence does: a, b or c.
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// several is a flag that takes texts, comma-separated or repeated.
func several(to *[]string, word string) *value[[]string] {
	given := false
	return &value[[]string]{to, word + ",…", func(s string) ([]string, error) {
		list := strings.Split(s, ",")
		if slices.Contains(list, "") {
			return nil, fmt.Errorf("no %s given", word)
		}
		if given {
			list = append(*to, list...)
		}
		given = true
		return list, nil
	}, func(list []string) string { return strings.Join(list, ",") }}
}

// endpoints are several etcd URLs. Messages never show passwords in them.
func endpoints(to *[]string) *value[[]string] {
	v := several(to, "URL")
	v.show = func(list []string) string { return proxycheck.Etcd{Endpoints: list}.String() }
	return v
}

// count is a flag that takes wrk's counts: 200, 10k, 1M.
func count(to *int) *value[int] { return &value[int]{to, "COUNT", parseCount, strconv.Itoa} }

// bounded is a count from 1 to most.
func bounded(to *int, most int) *value[int] {
	return &value[int]{to, "COUNT", func(s string) (int, error) { return parseBounded(s, most) }, strconv.Itoa}
}

func parseBounded(s string, most int) (int, error) {
	n, err := parseCount(s)
	if err == nil && (n < 1 || n > most) {
		err = fmt.Errorf("%d is not between 1 and %d", n, most)
	}
	return n, err
}

// counts is a flag that takes a count from 1 to most and further ones: 1,2,4.
func counts(first *int, further *[]int, most int) *value[[]int] {
	list := []int{*first}
	return &value[[]int]{&list, "COUNT,…", func(s string) ([]int, error) {
		var read []int
		for _, part := range strings.Split(s, ",") {
			n, err := parseBounded(part, most)
			if err == nil && slices.Contains(read, n) {
				err = fmt.Errorf("%d is given twice", n)
			}
			if err != nil {
				return nil, err
			}
			read = append(read, n)
		}
		*first, *further = read[0], read[1:]
		return read, nil
	}, func(list []int) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]") }}
}

func parseCount(s string) (int, error) {
	digits, factor := s, 1
	if s != "" {
		if i := strings.IndexByte("kmg", s[len(s)-1]|0x20); i >= 0 {
			digits, factor = s[:len(s)-1], []int{1e3, 1e6, 1e9}[i]
		}
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || int(n) > math.MaxInt32/factor {
		return 0, fmt.Errorf("%q is not a count such as 200 or 10k", s)
	}
	return int(n) * factor, nil
}

// duration is a flag that takes wrk's times (10, 10s, 2m, 1h) and Go's (1m30s,
// 500ms).
func duration(to *time.Duration) *value[time.Duration] {
	return &value[time.Duration]{to, "TIME", parseTime, shortDuration}
}

func parseTime(s string) (time.Duration, error) {
	if n, err := strconv.ParseUint(s, 10, 31); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	d, err := time.ParseDuration(strings.ToLower(s))
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a time such as 10s or 1m", s)
	}
	return d, nil
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

// rate is a flag that takes requests a second: 5000, 12.5, 10k.
func rate(to *float64) *value[float64] {
	return &value[float64]{to, "RATE", parseRate, func(r float64) string { return strconv.FormatFloat(r, 'f', -1, 64) }}
}

func parseRate(s string) (float64, error) {
	r, err := strconv.ParseFloat(s, 64)
	if n, countErr := parseCount(s); countErr == nil {
		r, err = float64(n), nil
	}
	if err != nil || !(r > 0 && r <= load.MaxRate) {
		return 0, fmt.Errorf("%q is not a rate above 0 such as 500 or 10k", s)
	}
	return r, nil
}

// runRate is a rate, or a share of the maximum; both are 0 in a closed loop.
type runRate struct{ rate, share float64 }

// rateOrShare is a flag that takes a runRate: 5000, 75%.
func rateOrShare(to *runRate) *value[runRate] {
	return &value[runRate]{to, "RATE", func(s string) (r runRate, err error) {
		if strings.HasSuffix(s, "%") {
			r.share, err = parseShare(s)
		} else {
			r.rate, err = parseRate(s)
		}
		return r, err
	}, func(runRate) string { return "" }}
}

// share is a flag that takes a share: 3%.
func share(to *float64) *value[float64] {
	return &value[float64]{to, "SHARE", parseShare, func(float64) string { return "" }}
}

// shares is a flag that takes shares of a maximum: 10%,25%.
func shares(to *[]float64) *value[[]float64] {
	return &value[[]float64]{to, "SHARE,…", parseShares, func([]float64) string { return "" }}
}

func parseShares(s string) (list []float64, err error) {
	parts := strings.Split(s, ",")
	for _, part := range parts {
		share, err := parseShare(part)
		if err != nil {
			return nil, &usageError{text: err.Error(), hint: withPercents(parts)}
		}
		if slices.Contains(list, share) {
			return nil, fmt.Errorf("%s is given twice", part)
		}
		list = append(list, share)
	}
	return list, nil
}

// withPercents suggests percent signs if that is all that parts lack.
func withPercents(parts []string) string {
	var meant []string
	for _, part := range parts {
		part = strings.TrimSuffix(part, "%") + "%"
		if _, err := parseShare(part); err != nil {
			return ""
		}
		meant = append(meant, part)
	}
	return didYouMean(strings.Join(meant, ","))
}

// parseShare reads 75% as 0.75. Beyond the maximum a queue would only grow.
func parseShare(s string) (float64, error) {
	number, ok := strings.CutSuffix(s, "%")
	percent, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(percent > 0 && percent <= 100) {
		return 0, fmt.Errorf("%q is not a share above 0%% and up to 100%%, such as 75%%", s)
	}
	return percent / 100, nil
}

// parseHeaders parses the -H flags.
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
