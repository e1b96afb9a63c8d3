package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// options are what the flags say.
type options struct {
	only     []string
	pairs    int
	duration time.Duration
	slack    float64
	control  bool
	armrepro string
	// proxyWork is the CPU time that a request is to take the proxy.
	proxyWork time.Duration
}

// wants says whether a section was asked for.
func (o options) wants(section string) bool {
	return len(o.only) == 0 || slices.Contains(o.only, section)
}

func parseOptions(args []string, stdout io.Writer) (options, error) {
	var o options
	fs := pflag.NewFlagSet("peers", pflag.ContinueOnError)
	fs.SortFlags = false
	fs.SetOutput(io.Discard)
	fs.StringSliceVar(&o.only, "only", nil, "measure only these sections")
	fs.IntVar(&o.pairs, "pairs", 0, fmt.Sprintf("pairs of runs for each figure (default %d; %d for pinned and unpinned)", usualPairs, faithfulPairs))
	fs.DurationVar(&o.duration, "duration", 3*time.Second, "how long each run lasts, in whole seconds")
	fs.Float64Var(&o.slack, "slack", 1, "widen the bounds: costs may be so many times higher, distances from 1 so many times longer,\nrequests/s so many times fewer; bytes must be equal all the same")
	fs.BoolVar(&o.control, "control", false, "compare each peer with itself as well, which shows the noise")
	fs.StringVar(&o.armrepro, "armrepro", "", "compare this program instead of building it")
	fs.DurationVar(&o.proxyWork, "proxy-work", usualProxyWork, "CPU time that a request takes the proxy, as far as MD5 can fill it")
	fs.Usage = func() { writeHelp(stdout, fs) }
	err := fs.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return o, err
	case err != nil:
		return o, usagef("%v", err)
	case fs.NArg() > 0:
		return o, usagef("unexpected argument %q", fs.Arg(0))
	}
	return o, o.check()
}

func writeHelp(w io.Writer, fs *pflag.FlagSet) {
	fmt.Fprint(w, `Usage: go run ./bench/peers [flags]

Compares armrepro's load generator and upstream with wrk and nginx on this machine. A ratio
is armrepro's value divided by the peer's, of runs in turn: the median over the pairs, the
lowest and the highest.

Sections:
`)
	for _, s := range sections() {
		fmt.Fprintf(w, "  %-10s %s\n", s.name, s.about)
	}
	fmt.Fprintf(w, `
Flags:
%s
Exit codes: 0 every bound held, 1 failed, 2 usage, 3 a bound was missed, 130 interrupted.
`, fs.FlagUsages())
}

// usualProxyWork is about what a request takes APISIX's worker in the first
// scenario.
const usualProxyWork = 30 * time.Microsecond

// What bounds --duration, --pairs and --proxy-work is far above any use.
const (
	maxDuration  = time.Hour
	maxPairs     = 1000
	maxProxyWork = 10 * time.Millisecond
)

func (o options) check() error {
	var names []string
	for _, s := range sections() {
		names = append(names, s.name)
	}
	for _, name := range o.only {
		if !slices.Contains(names, name) {
			return usagef("--only: %q is none of %s", name, strings.Join(names, ", "))
		}
	}
	switch {
	case o.pairs < 0 || o.pairs > maxPairs:
		return usagef("--pairs must be between 1 and %d", maxPairs)
	case o.duration < time.Second || o.duration > maxDuration || o.duration%time.Second != 0:
		return usagef("--duration must be whole seconds, at most %s: wrk knows no others", maxDuration)
	case !(o.slack > 0) || math.IsInf(o.slack, 0):
		return usagef("--slack must be above 0")
	case o.proxyWork < 0 || o.proxyWork > maxProxyWork:
		return usagef("--proxy-work must be between 0s and %s", maxProxyWork)
	}
	return nil
}
