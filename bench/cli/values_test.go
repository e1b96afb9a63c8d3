package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"armrepro/bench"
	"armrepro/bench/load"
)

func TestCountValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"1": 1, "200": 200, "10k": 10000, "10K": 10000, "2m": 2000000, "1G": 1000000000,
		"": -1, "k": -1, "-1": -1, "1.5k": -1, "10kk": -1, "3g": -1, "99999999999": -1, " 1": -1, "1 k": -1,
	} {
		got := -1
		if err := count(&got).Set(text); (err != nil) != (want == -1) || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestTimeValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"10": 10 * time.Second, "10s": 10 * time.Second, "2m": 2 * time.Minute, "1H": time.Hour,
		"500ms": 500 * time.Millisecond, "1m30s": 90 * time.Second, "0": 0,
		"": -1, "-1s": -1, "s": -1, "1x": -1, "99999999999999h": -1, "NaN": -1,
	} {
		got := time.Duration(-1)
		if err := duration(&got).Set(text); (err != nil) != (want == -1) || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}

func FuzzFlagValues(f *testing.F) {
	for _, s := range []string{"10k", "1m", "1m30s", "9223372036854775807ns", "2147483647g"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := parseCount(text); err == nil && n < 0 {
			t.Errorf("%q is the count %d", text, n)
		}
		d, err := parseTime(text)
		if err != nil {
			return
		}
		if again, err := parseTime(shortDuration(d)); err != nil || again != d || d < 0 {
			t.Errorf("%q prints as %q, which reads as %v, %v", text, shortDuration(d), again, err)
		}
	})
}

func TestShortDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		time.Minute: "1m", time.Hour: "1h", 90 * time.Second: "1m30s", 2 * time.Second: "2s",
		90 * time.Minute: "1h30m", 10 * time.Minute: "10m", 0: "0s", 20 * time.Hour: "20h",
	} {
		if got := shortDuration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestParseHeaders(t *testing.T) {
	t.Parallel()
	header, err := parseHeaders([]string{"X-A: 1", "X-A:2", "Host: example.org"})
	if err != nil || strings.Join(header["X-A"], ",") != "1,2" || header["Host"][0] != "example.org" {
		t.Errorf("%v, %v", header, err)
	}
	for _, bad := range []string{"", "no colon", ": empty"} {
		if _, err := parseHeaders([]string{bad}); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestCompleteKey refuses at once what no header can hold.
func TestCompleteKey(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{"edd1c9f0": "", "two\nlines": "line break", "\x1b[A": "control character", "tab\t": "control"} {
		if err := completeKey(&key); (err == nil) != (want == "") || err != nil && (!is[*usageError](err) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// TestProgress shows what a terminal is sent: one line, erased for the log.
func TestProgress(t *testing.T) {
	t.Parallel()
	var out, logged bytes.Buffer
	p := &progress{w: &out, log: zerolog.New(&logged), lines: true}
	p.Begin("one, run 1 of 2", 10*time.Second)
	p.Update(1000)
	if _, err := io.WriteString(p, "a log line\n"); err != nil {
		t.Fatal(err)
	}
	p.End(&bench.Run{})
	if logged.Len() == 0 || strings.Contains(logged.String(), "cut") {
		t.Errorf("logged %q of a whole run", &logged)
	}
	p.End(&bench.Run{Result: load.Result{Seconds: 2.51, QPS: 0.0132}, Cut: true})
	if text := logged.String(); !strings.Contains(text, `"qps":"0.013"`) || !strings.Contains(text, "run 1 of 2, cut after 2.5 s") {
		t.Errorf("logged %q", text)
	}
	got := out.String()
	for _, want := range []string{
		clearLine + "one, run 1 of 2: – requests/s, 10s left",
		" requests/s, 10s left" + clearLine + "a log line\n" + "one, run 1 of 2: ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not hold %q", got, want)
		}
	}
	if !strings.HasSuffix(got, clearLine) {
		t.Errorf("the line is not erased at the end: %q", got)
	}
}

func TestProgressWithoutTerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := newProgress(&out, &logFlags{format: "text"})
	p.Begin("one", time.Second)
	p.Update(1)
	p.End(nil)
	if out.Len() > 0 {
		t.Errorf("wrote %q to what is no terminal", out.String())
	}
}

// TestScenarioExample reads the scenario file that the help shows, also on a narrow
// terminal.
func TestScenarioExample(t *testing.T) {
	t.Parallel()
	for _, width := range []int{48, 100} {
		_, example, _ := strings.Cut(reflow(scenarioAbout, width), "\n\n")
		example, _, _ = strings.Cut(example, "\n\n")
		s, err := bench.ReadScenario(strings.NewReader(example))
		if err != nil || s.Name != "limited" || len(s.Plugins()) != 2 || s.Expect.Metric == "" {
			t.Errorf("at %d columns: %+v, %v", width, s, err)
		}
	}
}
