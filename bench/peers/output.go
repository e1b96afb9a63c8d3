package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"armrepro/bench/load"
)

// output is what wrk prints, which `armrepro load` prints as well. A latency
// that is not there is NaN.
type output struct {
	requests uint64
	// qps is Requests/sec.
	qps float64
	// mean, p50, p90 and p99 are latencies in microseconds, after wrk's
	// correction for coordinated omission. The percentiles are there only
	// with --latency.
	mean, p50, p90, p99 float64
	errors              load.Errors
}

// parseOutput reads wrk's output (print_stats and main in wrk's wrk.c). Output
// without the number of requests or their rate is an error: the run broke off.
func parseOutput(text string) (output, error) {
	nan := math.NaN()
	o := output{qps: nan, mean: nan, p50: nan, p90: nan, p99: nan}
	counted := false
	for line := range strings.Lines(text) {
		var err error
		fields := strings.Fields(line)
		switch {
		case len(fields) == 5 && fields[0] == "Latency":
			o.mean, err = parseLatency(fields[1])
		case len(fields) == 2 && strings.HasSuffix(fields[0], "%"):
			err = o.percentile(fields[0], fields[1])
		case len(fields) > 2 && fields[1] == "requests" && fields[2] == "in":
			counted = true
			o.requests, err = strconv.ParseUint(fields[0], 10, 63)
		case len(fields) == 2 && fields[0] == "Requests/sec:":
			o.qps, err = parseNumber(fields[1])
		case strings.HasPrefix(line, "  Socket errors:"):
			_, err = fmt.Sscanf(line, "  Socket errors: connect %d, read %d, write %d, timeout %d",
				&o.errors.Connect, &o.errors.Read, &o.errors.Write, &o.errors.Timeout)
		case strings.HasPrefix(line, "  Non-2xx or 3xx responses:"):
			_, err = fmt.Sscanf(line, "  Non-2xx or 3xx responses: %d", &o.errors.Status)
		}
		if err != nil {
			return output{}, fmt.Errorf("parse line %q: %w", strings.TrimSpace(line), err)
		}
	}
	if !counted || math.IsNaN(o.qps) {
		return output{}, errors.New("parse output: it lacks the number of requests or their rate")
	}
	if o.requests == 0 {
		// The zeros printed then were not measured.
		o.mean, o.p50, o.p90, o.p99 = nan, nan, nan, nan
	}
	return o, nil
}

// percentile keeps one line of the distribution if it is a wanted one.
func (o *output) percentile(name, value string) (err error) {
	switch name {
	case "50%":
		o.p50, err = parseLatency(value)
	case "90%":
		o.p90, err = parseLatency(value)
	case "99%":
		o.p99, err = parseLatency(value)
	}
	return err
}

// latencyUnits are wrk's units of time in microseconds, the longer names first
// where one ends like another.
var latencyUnits = []struct {
	name string
	us   float64
}{{"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"m", 60e6}, {"h", 3600e6}}

// parseLatency reads a time such as 226.30us into microseconds. A dash, which
// stands for no value, is NaN.
func parseLatency(s string) (float64, error) {
	if s == "-" {
		return math.NaN(), nil
	}
	for _, unit := range latencyUnits {
		if digits, ok := strings.CutSuffix(s, unit.name); ok {
			n, err := parseNumber(digits)
			return n * unit.us, err
		}
	}
	return 0, fmt.Errorf("%q has no unit of time", s)
}

// parseNumber reads digits with at most one point in or behind them, as printf
// writes them: no sign, exponent or name of a number.
func parseNumber(s string) (float64, error) {
	if strings.Trim(s, "0123456789.") != "" {
		return 0, fmt.Errorf("%q is no number", s)
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", s)
	}
	return n, nil
}

// exact is what is counted rather than rounded.
type exact struct {
	Requests uint64 `json:"requests"`
	Bytes    uint64 `json:"bytes"`
}

// parseExact reads the JSON of `armrepro load --output json`, or what
// exactScript makes wrk write.
func parseExact(text string) (exact, error) {
	var e exact
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return exact{}, fmt.Errorf("parse counts: %w", err)
	}
	if e.Requests == 0 || e.Bytes == 0 {
		return exact{}, errors.New("parse counts: no answer was counted")
	}
	return e, nil
}

// exactScript makes wrk write the counts that its output rounds, as JSON to
// standard error. It defines nothing but done, so nothing changes in wrk's
// loops.
const exactScript = `function done(summary)
  io.stderr:write(string.format('{"requests":%.0f,"bytes":%.0f}\n', summary.requests, summary.bytes))
end
`
