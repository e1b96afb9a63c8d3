package wrk

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"armrepro/bench/load"
)

func (r *Run) readRunning(found []string) (err error) {
	r.URL = found[1]
	var us float64
	us, _, err = microseconds(found[0])
	r.DurationS = us / 1e6
	return err
}

func (r *Run) readThreads(found []string) error {
	return errors.Join(setCount(&r.Threads, found[0]), setCount(&r.Connections, found[1]))
}

// readLatency reads mean, deviation, maximum and the share within a deviation.
// That one is no number where nothing was measured.
func (r *Run) readLatency(found []string) error {
	if _, _, err := scaled(found[3], percent); err != nil {
		return nil
	}
	l := &r.Result.Latency
	return errors.Join(setLatency(&l.MeanWrk, found[0]), setLatency(&l.Stdev, found[1]), setLatency(&l.Max, found[2]))
}

func (r *Run) readPercentile(found []string) error {
	l := &r.Result.Latency
	percent, err := number(found[0])
	if err != nil {
		return err
	}
	into := map[float64]**float64{50: &l.P50, 90: &l.P90, 99: &l.P99, 99.9: &l.P999}[percent]
	if into == nil || *into != nil || found[1] == missing {
		return nil
	}
	return setLatency(into, found[1])
}

func (r *Run) readRequests(found []string) error {
	us, step, timeErr := microseconds(found[1])
	bytes, _, bytesErr := scaled(found[2], byteUnits)
	r.Result.Seconds, r.spare = us/1e6, step/1e6
	r.Result.Bytes = uint64(bytes)
	return errors.Join(setCount(&r.Result.Requests, found[0]), timeErr, bytesErr)
}

func (r *Run) readSocketErrors(found []string) error {
	e := &r.Result.Errors
	return errors.Join(setCount(&e.Connect, found[0]), setCount(&e.Read, found[1]),
		setCount(&e.Write, found[2]), setCount(&e.Timeout, found[3]))
}

func (r *Run) readStatus(found []string) error { return setCount(&r.Result.Errors.Status, found[0]) }

// readTarget reads what only `armrepro load` prints, at a fixed rate.
func (r *Run) readTarget(found []string) (err error) {
	r.Result.Rate, err = number(found[0])
	return errors.Join(err, setCount(&r.Result.Unsent, found[1]))
}

func (r *Run) readRate(found []string) (err error) {
	r.Result.QPS, err = number(found[0])
	return err
}

// settle makes the figures fit together, or says that they don't.
func (r *Run) settle() error {
	res := &r.Result
	if res.Requests == 0 || res.Latency.MeanWrk == nil {
		res.Latency = load.Latency{} // zeros stand for nothing measured
	}
	if res.Rate > 0 {
		// A fixed rate needs no correction.
		res.Latency.Mean, res.Latency.MeanWrk = res.Latency.MeanWrk, nil
	}
	if res.QPS == 0 || res.Requests == 0 {
		return nil
	}
	exact := float64(res.Requests) / res.QPS
	within := min(max(exact, res.Seconds-r.spare), res.Seconds+r.spare)
	// QPS is rounded too, which matters where it is small.
	const rounded, slack = 0.005, 0.02
	if math.Abs(exact-within) > (slack+rounded/res.QPS)*exact {
		return fmt.Errorf("%d requests in %.2f s are not %.2f requests/sec", res.Requests, res.Seconds, res.QPS)
	}
	res.Seconds = within
	return nil
}

// missing is what `armrepro load` prints for a figure that there is none of.
const missing = "-"

// The units that wrk gives its figures, and what they are times.
var (
	timeUnits = map[string]float64{"us": 1, "ms": 1e3, "s": 1e6, "m": 60e6, "h": 3600e6}
	byteUnits = map[string]float64{"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40, "PB": 1 << 50}
	percent   = map[string]float64{"%": 1}
)

var quantity = regexp.MustCompile(`^(\d+)(\.\d+)?([a-zA-Z%]+)$`)

// scaled reads a figure with its unit, and how much it can be off since it was
// rounded.
func scaled(s string, units map[string]float64) (value, spare float64, err error) {
	m := quantity.FindStringSubmatch(s)
	if m == nil || units[m[3]] == 0 {
		return 0, 0, fmt.Errorf("%.20q is not a figure with a unit", s)
	}
	if value, err = number(m[1] + m[2]); err == nil && value*units[m[3]] > most {
		err = fmt.Errorf("%.20q is too much", s)
	}
	if err != nil {
		return 0, 0, err
	}
	spare = 0.5 * units[m[3]] / math.Pow10(max(0, len(m[2])-1))
	// 2.01 ms are 2010 µs, whatever binary fractions make of that.
	const hundredth = 100
	return math.Round(value*units[m[3]]*hundredth) / hundredth, spare, nil
}

func microseconds(s string) (us, spare float64, err error) { return scaled(s, timeUnits) }

var decimal = regexp.MustCompile(`^\d+(?:\.\d+)?$`)

// most is more than any figure of a run, and what a float64 still counts exactly.
const most = 1 << 53

func number(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !decimal.MatchString(s) || v > most {
		return 0, fmt.Errorf("%.20q is not a number from 0 to %d", s, most)
	}
	return v, nil
}

func setCount[T int | uint64](to *T, s string) error {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n > most {
		return fmt.Errorf("%.20q is not a count", s)
	}
	*to = T(n)
	return nil
}

func setLatency(to **float64, s string) error {
	us, _, err := microseconds(s)
	if err != nil {
		return err
	}
	*to = &us
	return nil
}
