// Package wrk reads what wrk prints, and finds and runs an installed wrk.
package wrk

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"armrepro/bench/load"
)

// Run is one run as wrk printed it, or `armrepro load`. What was not printed is
// zero, or nil where there is a pointer.
type Run struct {
	// Line is the line of the text that the run begins on, from 1.
	Line int
	// URL, DurationS (seconds), Threads and Connections are what was asked for.
	URL                  string
	DurationS            float64
	Threads, Connections int
	// Result is what was measured. wrk corrects its latencies for coordinated
	// omission, all but Max; in contrast to armrepro's own, so are the
	// percentiles here. Its plain mean is not known. Seconds and Bytes are as
	// exact as their rounded figures and Requests/sec allow.
	Result load.Result
	// Faults say what is missing or could not be read. With one the figures
	// are not to be trusted.
	Faults []Fault

	// spare is how far Result.Seconds can be off, since it was rounded.
	spare float64
}

// Fault is something that could not be read on a line of the text.
type Fault struct {
	Line int
	Text string
}

// Err is an error with the run's first fault, or nil.
func (r *Run) Err() error {
	if len(r.Faults) == 0 {
		return nil
	}
	return fmt.Errorf("line %d: %s", r.Faults[0].Line, r.Faults[0].Text)
}

// Bounds on what is read. wrk prints some hundred bytes a run.
const (
	maxBytes  = 8 << 20
	maxLine   = 4 << 10
	maxRuns   = 10_000
	maxFaults = 20
)

// Parse finds the runs in a text, which may be a log of several with anything
// before, between and after them, and colors. What of a run can't be read is one
// of its faults; an error is one of reading, or a text beyond all bounds.
func Parse(r io.Reader) ([]Run, error) {
	var p parser
	limited := &io.LimitedReader{R: r, N: maxBytes + 1}
	lines := bufio.NewReaderSize(limited, maxLine)
	for {
		line, long, err := lines.ReadLine()
		p.line++
		if !long && err == nil {
			p.read(plain(line))
		}
		for long && err == nil { // Nothing of wrk's is that long.
			_, long, err = lines.ReadLine()
		}
		switch {
		case limited.N <= 0:
			return nil, fmt.Errorf("the text is longer than %d MiB", maxBytes>>20)
		case len(p.runs) > maxRuns:
			return nil, fmt.Errorf("the text has more than %d runs", maxRuns)
		case errors.Is(err, io.EOF):
			p.end()
			return p.runs, nil
		case err != nil:
			return nil, err
		}
	}
}

// escapes are a terminal's sequences for colors, cursor and titles.
var escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))`)

// plain is a line without colors and white space around it.
func plain(line []byte) string {
	if bytes.IndexByte(line, '\x1b') < 0 {
		return string(bytes.TrimSpace(line))
	}
	return strings.TrimSpace(string(escapes.ReplaceAll(line, nil)))
}

// The rows of a run, in the order in which they are printed.
const (
	rowRunning = iota
	rowThreads
	rowLatency
	rowDistribution
	rowRequests
	rowSocketErrors
	rowStatus
	rowTarget
	rowRate
	rowTransfer
)

// row is a line of wrk's. The pattern recognizes it, with anything before it, such
// as a prompt or the time; name is in every such line. read takes what the pattern's
// groups caught.
type row struct {
	name    string
	pattern *regexp.Regexp
	read    func(*Run, []string) error
}

var rows = [...]row{
	rowRunning:      {"Running", regexp.MustCompile(`\bRunning (\S+) test @ (\S+)$`), (*Run).readRunning},
	rowThreads:      {"threads and", regexp.MustCompile(`\b(\d+) threads and (\d+) connections$`), (*Run).readThreads},
	rowLatency:      {"Latency", regexp.MustCompile(`\bLatency +([\d-]\S*) +([\d-]\S*) +([\d-]\S*) +(\S+)$`), (*Run).readLatency},
	rowDistribution: {"Latency Distribution", regexp.MustCompile(`\bLatency Distribution\b`), nil},
	rowRequests:     {"requests in", regexp.MustCompile(`(\S+) requests in (\S+), (\S+) read$`), (*Run).readRequests},
	rowSocketErrors: {"Socket errors", regexp.MustCompile(`\bSocket errors: connect (\S+), read (\S+), write (\S+), timeout (\S+)$`), (*Run).readSocketErrors},
	rowStatus:       {"Non-2xx or 3xx responses", regexp.MustCompile(`\bNon-2xx or 3xx responses: +(\S+)$`), (*Run).readStatus},
	rowTarget:       {"Target rate", regexp.MustCompile(`\bTarget rate: (\S+) requests/sec, (\S+) requests were due`), (*Run).readTarget},
	rowRate:         {"Requests/sec", regexp.MustCompile(`\bRequests/sec: +(\S+)$`), (*Run).readRate},
	rowTransfer:     {"Transfer/sec", regexp.MustCompile(`\bTransfer/sec: +\S+$`), nil},
}

// percentile is a line of the distribution: 99% from wrk, 99.000% from wrk2.
var percentile = regexp.MustCompile(`(?:^|\s)(\d+(?:\.\d+)?)% +(\S+)$`)

// parser reads a text line by line.
type parser struct {
	runs []Run
	line int
	// within says that the last of runs has not ended; has are its rows so
	// far, and last is the latest of them.
	within bool
	has    [len(rows)]bool
	last   int
	// distribution says that percentiles may follow.
	distribution bool
}

// read reads a line, which may have nothing to do with wrk.
func (p *parser) read(line string) {
	for kind, row := range rows {
		if !strings.Contains(line, row.name) {
			continue
		}
		if found := row.pattern.FindStringSubmatch(line); found != nil {
			p.take(kind, line, found[1:])
			return
		}
	}
	if !p.distribution {
		return
	}
	if found := percentile.FindStringSubmatch(line); found != nil {
		p.note(line, p.run().readPercentile(found[1:]))
	}
	// Service is `armrepro load`'s, at a fixed rate.
	if strings.Contains(line, "Service Distribution") {
		p.distribution = false
	}
}

// take reads a row. One that can't follow the last one begins another run.
func (p *parser) take(kind int, line string, found []string) {
	if kind == rowDistribution && p.within && p.last == kind {
		p.distribution = false // wrk2 prints a second one, uncorrected.
		return
	}
	if !p.within || kind <= p.last {
		p.end()
		p.runs = append(p.runs, Run{Line: p.line})
		p.within, p.has = true, [len(rows)]bool{}
	}
	p.has[kind], p.last = true, kind
	p.distribution = kind == rowDistribution
	if read := rows[kind].read; read != nil {
		p.note(line, read(p.run(), found))
	}
	if kind == rowTransfer {
		p.end()
	}
}

func (p *parser) run() *Run { return &p.runs[len(p.runs)-1] }

// note notes what could not be read of a line.
func (p *parser) note(line string, err error) {
	if err == nil {
		return
	}
	const most = 80
	p.fault("read %.*q: %v", most, line, err)
}

func (p *parser) fault(format string, args ...any) {
	if r := p.run(); len(r.Faults) < maxFaults {
		r.Faults = append(r.Faults, Fault{p.line, fmt.Sprintf(format, args...)})
	}
}

// end ends the current run, if there is one, and looks at what it lacks.
func (p *parser) end() {
	if !p.within {
		return
	}
	p.within, p.distribution = false, false
	for _, kind := range []int{rowLatency, rowRequests, rowRate} {
		if !p.has[kind] {
			p.fault("the run ends without the line %q", rows[kind].name)
		}
	}
	if err := p.run().settle(); err != nil {
		p.fault("%v", err)
	}
}
