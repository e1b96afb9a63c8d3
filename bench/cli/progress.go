package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"armrepro/bench"
)

// progress shows a run's progress on a terminal, in one line below the log. The
// log is written through it, so the two do not overwrite each other. Without a
// terminal there is only the log.
type progress struct {
	w     io.Writer
	log   zerolog.Logger
	lines bool

	mu    sync.Mutex
	line  string
	phase string
	begin time.Time
	lasts time.Duration
	last  time.Time
	done  uint64
}

func newProgress(w io.Writer, flags *logFlags) *progress {
	return &progress{w: w, lines: takesEscapes(w) && !flags.quiet && flags.format == "text"}
}

// clearLine returns to the beginning of the line and erases it.
const clearLine = "\r\x1b[K"

// Write writes log lines above the progress line.
func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.line == "" {
		return p.w.Write(b)
	}
	if _, err := fmt.Fprintf(p.w, "%s%s%s", clearLine, b, p.line); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Begin shows that a phase begins.
func (p *progress) Begin(phase string, lasts time.Duration) {
	p.mu.Lock()
	p.phase, p.lasts, p.begin = phase, lasts, time.Now()
	p.last, p.done = p.begin, 0
	p.mu.Unlock()
	p.Update(0)
}

// Update shows the requests a second since the last update and the time left.
func (p *progress) Update(completed uint64) {
	if !p.lines {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	left := max(0, p.lasts-now.Sub(p.begin)).Round(time.Second)
	rate := "–"
	if completed > p.done {
		rate = bench.RoundRate(float64(completed-p.done) / now.Sub(p.last).Seconds())
	}
	p.last, p.done = now, completed
	p.line = fitted(fmt.Sprintf("%s: %s requests/s, %s left", p.phase, rate, left), terminalWidth(p.w))
	fmt.Fprint(p.w, clearLine, p.line)
}

// fitted cuts the beginning of a line that the terminal would wrap: a wrapped
// line cannot be erased. A width of 0 is unknown.
func fitted(line string, width int) string {
	runes := []rune(line)
	if width < 2 || len(runes) < width {
		return line
	}
	return "…" + string(runes[len(runes)-width+2:])
}

// End removes the line and logs what was measured.
func (p *progress) End(run *bench.Run) {
	p.clear()
	if run == nil {
		return
	}
	e := p.log.Info().Str("qps", bench.RoundRate(run.QPS))
	if run.Latency.MeanWrk != nil {
		e = e.Str("latency", fmt.Sprintf("%.2fms", *run.Latency.MeanWrk/1000))
	}
	if run.Cut {
		p.phase += fmt.Sprintf(", cut after %.1f s", run.Seconds)
	}
	e.Msg(p.phase)
}

// clear removes the line.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.line != "" {
		fmt.Fprint(p.w, clearLine)
		p.line = ""
	}
}
