package report

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// missing stands for a figure that could not be measured.
const missing = "–"

// fixed prints v with the given number of decimals. Figures beyond any sense
// are printed short, so that no table grows without limit; an average of such
// figures that overflowed is no figure.
func fixed(v float64, decimals int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return missing
	}
	if math.Abs(v) >= 1e12 {
		return strconv.FormatFloat(v, 'g', 6, 64)
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// figure prints *v by format, or the mark for a missing figure.
func figure[T any](v *T, format func(T) string) string {
	if v == nil {
		return missing
	}
	return format(*v)
}

// positive prints n, or the mark for a missing figure if n is zero: a machine
// without cores or memory is one that could not be read.
func positive[T int | uint64 | float64](n T, format func(T) string) string {
	if n <= 0 {
		return missing
	}
	return format(n)
}

// known prints s, or the mark for a missing one.
func known(s string) string {
	if s == "" {
		return missing
	}
	return s
}

// rate prints requests per second as wrk does, but always at least two digits of
// them.
func rate(qps float64) string {
	decimals := 2
	for v := qps; v > 0 && v < 0.1; v *= 10 {
		decimals++
	}
	const most = 9
	if decimals > most {
		return shortest(qps)
	}
	return fixed(qps, decimals)
}

func milliseconds(ms float64) string { return fixed(ms, 3) + " ms" }

// microseconds prints them in milliseconds.
func microseconds(us float64) string { return milliseconds(us / 1000) }

// percent prints a share, and CPU time in cores as percent of one.
func percent(share float64) string { return fixed(share*100, 1) + " %" }

func count(n uint64) string { return strconv.FormatUint(n, 10) }

// size prints bytes in the largest binary unit that leaves a figure of 1 or
// more, with one decimal.
func size(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	v, i := float64(n), 0
	for v >= 1024 && i < len(units)-1 {
		v, i = v/1024, i+1
	}
	return fixed(v, 1) + " " + units[i]
}

// shortest prints a figure that somebody set, with no more digits than it has.
func shortest(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func seconds(s float64) string { return shortest(s) + " s" }

func timestamp(t time.Time) string {
	if t.IsZero() {
		return missing
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// plural prints n and its noun.
func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// Or joins words as a sentence does: a, b or c.
func Or(words []string) string { return listed("or", words) }

func listed(last string, words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " " + last + " " + words[n-1]
	}
	return strings.Join(words, "")
}

// each is the text of every item.
func each[T any](list []T, text func(T) string) []string {
	texts := make([]string, 0, len(list))
	for _, item := range list {
		texts = append(texts, text(item))
	}
	return texts
}

// after puts a prefix before s, unless s is empty.
func after(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// join joins the parts that are not empty.
func join(sep string, parts ...string) string {
	kept := slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == "" })
	return strings.Join(kept, sep)
}
