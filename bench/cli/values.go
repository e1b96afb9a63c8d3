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
	"armrepro/bench/report"
	"armrepro/proxycheck"
)

// value is a flag that read parses and show prints; word is its name in the help,
// choices are the words that a shell completes.
type value[T any] struct {
	to      *T
	word    string
	read    func(string) (T, error)
	show    func(T) string
	choices []string
}

func newValue[T any](to *T, word string, read func(string) (T, error)) *value[T] {
	return &value[T]{to: to, word: word, read: read, show: func(v T) string { return fmt.Sprint(v) }}
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
	return newValue(to, word, func(s string) (string, error) {
		if s == "" {
			return "", fmt.Errorf("no %s given", word)
		}
		return s, nil
	})
}

// newChoice is a flag that takes one of several words. what names them, as in
// "output format".
func newChoice(to *string, what string, choices ...string) *value[string] {
	v := newValue(to, strings.ToUpper(what[strings.LastIndex(what, " ")+1:]), func(s string) (string, error) {
		if !slices.Contains(choices, s) {
			return "", fmt.Errorf("unknown %s %q; use %s", what, s, report.Or(choices))
		}
		return s, nil
	})
	v.choices = choices
	return v
}

// several is a flag that takes texts, comma-separated or repeated.
func several(to *[]string, word string) *value[[]string] {
	given := false
	return newValue(to, word+",…", func(s string) ([]string, error) {
		list := strings.Split(s, ",")
		if slices.Contains(list, "") {
			return nil, fmt.Errorf("no %s given", word)
		}
		if given {
			list = append(*to, list...)
		}
		given = true
		return list, nil
	})
}

// endpoints are several etcd URLs. Messages never show passwords in them.
func endpoints(to *[]string) *value[[]string] {
	v := several(to, "URL")
	v.show = func(list []string) string { return proxycheck.Etcd{Endpoints: list}.String() }
	return v
}

// count is a flag that takes wrk's counts: 200, 10k, 1M.
func count(to *int) *value[int] { return newValue(to, "COUNT", parseCount) }

// bounded is a count from 1 to most.
func bounded(to *int, most int) *value[int] { return newValue(to, "COUNT", parseBounded(most)) }

// counts is a flag that takes a count from 1 to most and further ones: 1,2,4.
func counts(first *int, further *[]int, most int) *value[[]int] {
	list := []int{*first}
	return newValue(&list, "COUNT,…", func(s string) ([]int, error) {
		read, err := parseList(s, parseBounded(most))
		if err == nil {
			*first, *further = read[0], read[1:]
		}
		return read, err
	})
}

// parseList reads numbers that are separated by commas, each there once.
func parseList[T int | float64](s string, parse func(string) (T, error)) ([]T, error) {
	var list []T
	for part := range strings.SplitSeq(s, ",") {
		n, err := parse(part)
		if err == nil && slices.Contains(list, n) {
			err = fmt.Errorf("%s is given twice", part)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

func parseBounded(most int) func(string) (int, error) {
	return func(s string) (int, error) {
		n, err := parseCount(s)
		if err == nil && (n < 1 || n > most) {
			err = fmt.Errorf("%d is not between 1 and %d", n, most)
		}
		return n, err
	}
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
	v := newValue(to, "TIME", parseTime)
	v.show = shortDuration
	return v
}

// seconds is a duration in seconds.
func seconds(to *float64) *value[float64] {
	v := newValue(to, "TIME", func(s string) (float64, error) {
		d, err := parseTime(s)
		return d.Seconds(), err
	})
	v.show = func(s float64) string { return shortDuration(time.Duration(s * float64(time.Second))) }
	return v
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
	return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(d.String())
}

// rate is a flag that takes requests a second: 5000, 12.5, 10k.
func rate(to *float64) *value[float64] { return newValue(to, "RATE", parseRate) }

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

// rateOrShare is a flag that takes a rate or a share of the maximum: 5000, 75%.
func rateOrShare(rate, share *float64) *value[float64] {
	return newValue(rate, "RATE", func(s string) (r float64, err error) {
		*share = 0
		if strings.HasSuffix(s, "%") {
			*share, err = parseShare(s)
			return 0, err
		}
		return parseRate(s)
	})
}

// share is a flag that takes a share: 3%.
func share(to *float64) *value[float64] { return newValue(to, "SHARE", parseShare) }

// shares is a flag that takes shares of a maximum: 10%,25%. Where all that they lack
// is percent signs, it suggests them.
func shares(to *[]float64) *value[[]float64] {
	return newValue(to, "SHARE,…", func(s string) ([]float64, error) {
		list, err := parseList(s, parseShare)
		meant := strings.ReplaceAll(strings.ReplaceAll(s, "%", ""), ",", "%,") + "%"
		if _, meantErr := parseList(meant, parseShare); err != nil && meantErr == nil {
			err = &usageError{text: err.Error(), hint: didYouMean(meant)}
		}
		return list, err
	})
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
