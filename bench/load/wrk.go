package load

import (
	"fmt"
	"io"
	"math/big"
	"time"
)

// scale is one of wrk's scales of units, each step times the one before. The
// first is per of what is formatted.
type scale struct {
	per   float64
	step  float64
	base  string
	units []string
}

// The scales of wrk's units.c, without its last unit, which it never reaches.
var (
	microseconds = scale{1, 1000, "us", []string{"ms"}}
	seconds      = scale{1e6, 60, "s", []string{"m"}}
	metric       = scale{1, 1000, "", []string{"k", "M", "G", "T"}}
	binary       = scale{1, 1024, "", []string{"K", "M", "G", "T"}}
)

// format prints n as wrk does: a unit is taken from 85% of it on. The division
// is that of wrk's long double on x86, since it decides how 1.005 is rounded.
func (s scale) format(n float64, decimals int) string {
	const longDouble = 64
	amount := new(big.Float).SetPrec(longDouble).SetFloat64(n)
	amount.Quo(amount, big.NewFloat(s.per))
	step, least := big.NewFloat(s.step), big.NewFloat(s.step*0.85)
	unit := s.base
	for _, u := range s.units {
		if amount.Cmp(least) < 0 {
			break
		}
		amount.Quo(amount, step)
		unit = u
	}
	return amount.Text('f', decimals) + unit
}

func formatMicroseconds(n float64) string {
	if n >= 1e6 {
		return seconds.format(n, 2)
	}
	return microseconds.format(n, 2)
}

func formatMetric(n float64) string { return metric.format(n, 2) }

// formatBinary leaves out the unit's last letter, B, as wrk does.
func formatBinary(n float64) string { return binary.format(n, 2) }

// WriteHeader prints what wrk prints before it begins. wrk knows whole seconds
// only.
func (r *Runner) WriteHeader(w io.Writer) error {
	duration := r.cfg.Duration.String()
	if r.cfg.Duration%time.Second == 0 {
		duration = seconds.format(float64(r.cfg.Duration.Microseconds()), 0)
	}
	_, err := fmt.Fprintf(w, "Running %s test @ %s\n  %d threads and %d connections\n",
		duration, r.cfg.URL, r.cfg.Threads, r.cfg.Connections)
	return err
}

// WriteWrk prints the measurement in wrk's output format, from wrk's
// statistics: latencies are corrected for coordinated omission and those above
// the timeout are left out. distribution adds the percentiles of wrk's
// --latency. At a fixed rate, which wrk has none of, latencies count from when
// a request was meant to be sent and need no correction; a row Service, from
// when it was, is added.
func (m *Measurement) WriteWrk(w io.Writer, distribution bool) error {
	out := &printer{w: w}
	out.printf("  Thread Stats%6s%11s%8s%12s\n", "Avg", "Stdev", "Max", "+/- Stdev")
	latency := m.raw
	if m.service == nil {
		latency = m.corrected()
	}
	out.row("Latency", latency, formatMicroseconds)
	if m.service != nil {
		out.row("Service", m.service, formatMicroseconds)
	}
	out.row("Req/Sec", m.rates, formatMetric)
	if distribution {
		out.distribution("Latency Distribution", latency)
		if m.service != nil {
			out.distribution("Service Distribution (from the actual send time)", m.service)
		}
	}
	out.printf("  %d requests in %s, %sB read\n", m.Requests,
		formatMicroseconds(float64(m.elapsed/time.Microsecond)), formatBinary(float64(m.Bytes)))
	if e := m.Errors; e.Connect+e.Read+e.Write+e.Timeout > 0 {
		out.printf("  Socket errors: connect %d, read %d, write %d, timeout %d\n", e.Connect, e.Read, e.Write, e.Timeout)
	}
	if m.Errors.Status > 0 {
		out.printf("  Non-2xx or 3xx responses: %d\n", m.Errors.Status)
	}
	if m.service != nil {
		out.printf("  Target rate: %.2f requests/sec, %d requests due but not sent\n", m.cfg.Rate, m.Unsent)
	}
	out.printf("Requests/sec: %9.2f\n", float64(m.Requests)/m.elapsed.Seconds())
	out.printf("Transfer/sec: %10sB\n", formatBinary(float64(m.Bytes)/m.elapsed.Seconds()))
	return out.err
}

// printer remembers the first error of many prints.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// row prints average, deviation, maximum and the share within one deviation.
func (p *printer) row(name string, h *histogram, format func(float64) string) {
	if h.count == 0 {
		// wrk prints -nan% in the last column.
		p.printf("    %-10s%s%s%s%8s\n", name, aligned("-", 8), aligned("-", 10), aligned("-", 9), "-")
		return
	}
	mean := h.mean()
	stdev := h.stdev(mean)
	p.printf("    %-10s%s%s%s%8.2f%%\n", name, aligned(format(mean), 8), aligned(format(stdev), 10),
		aligned(format(float64(h.max)), 9), 100*h.within(mean, stdev))
}

// distribution prints the percentiles of wrk's --latency.
func (p *printer) distribution(title string, h *histogram) {
	p.printf("  %s\n", title)
	for _, percent := range []float64{50, 75, 90, 99} {
		value := "-"
		if h.count > 0 {
			value = formatMicroseconds(float64(h.percentile(percent)))
		}
		p.printf("%7.0f%%%s\n", percent, aligned(value, 10))
	}
}

// aligned right-aligns s so that the numbers, not their units, end in one
// column, as wrk's print_units does.
func aligned(s string, width int) string {
	pad := 2
	for _, i := range []int{1, 2} {
		if len(s) >= i && isLetter(s[len(s)-i]) {
			pad--
		}
	}
	return fmt.Sprintf("%*s%*s", width-pad, s, pad, "")
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
