package wrk

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"armrepro/bench/load"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestParse reads what wrk was recorded to print: testdata/*.txt.
func TestParse(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 5 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			runs, err := Parse(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(runs, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, "txt") + "golden.json"
			if *update {
				if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || string(want) != string(got)+"\n" {
				t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

// whole is a run with every row.
const whole = `Running 10s test @ http://127.0.0.1:1980/
  2 threads and 16 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     2.01ms  319.37us   1.20m    85.54%
    Req/Sec     8.28k   593.08     9.46k    72.55%
  Latency Distribution
     50%  900.00us
     75%    1.11ms
     90%    1.30ms
     99%    2.50s
  1000 requests in 10.00s, 1.50KB read
  Socket errors: connect 1, read 2, write 3, timeout 4
  Non-2xx or 3xx responses: 5
Requests/sec:    100.00
Transfer/sec:     153.60B
`

// one parses a text with one run.
func one(t *testing.T, text string) Run {
	t.Helper()
	runs, err := Parse(strings.NewReader(text))
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, %v, in %s", len(runs), err, text)
	}
	return runs[0]
}

func TestFigures(t *testing.T) {
	t.Parallel()
	r := one(t, whole)
	if err := r.Err(); err != nil || r.URL != "http://127.0.0.1:1980/" || r.DurationS != 10 || r.Threads != 2 || r.Connections != 16 {
		t.Errorf("%+v, %v", r, err)
	}
	res, l := r.Result, r.Result.Latency
	if *l.MeanWrk != 2010 || *l.Stdev != 319.37 || *l.Max != 72e6 || *l.P50 != 900 || *l.P90 != 1300 || *l.P99 != 2.5e6 || l.P999 != nil || l.Mean != nil {
		t.Errorf("latency %+v", l)
	}
	if res.Requests != 1000 || res.Seconds != 10 || res.QPS != 100 || res.Bytes != 1536 || res.Reconnects != nil || res.Busy != nil || res.Histogram != "" {
		t.Errorf("%+v", res)
	}
	if want := (load.Errors{Connect: 1, Read: 2, Write: 3, Timeout: 4, Status: 5}); res.Errors != want {
		t.Errorf("%+v, want %+v", res.Errors, want)
	}
}

// TestSeconds has the time be as exact as the rounded figures allow.
func TestSeconds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		requests, qps string
		want          float64
	}{
		{"16666 requests in 1.00m", "276.85", 60.198663536},
		{"1000 requests in 10.00s", "99.96", 10.004001600},
		{"1 requests in 10.01s", "0.10", 10.005},
		{"201 requests in 2.01s", "100.00", 2.01},
	} {
		text := strings.Replace(strings.Replace(whole, "1000 requests in 10.00s", tt.requests, 1), "100.00\nT", tt.qps+"\nT", 1)
		r := one(t, text)
		if got := r.Result.Seconds; r.Err() != nil || got-tt.want > 1e-6 || tt.want-got > 1e-6 {
			t.Errorf("%s at %s: %v s, want %v; %v", tt.requests, tt.qps, got, tt.want, r.Err())
		}
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	text := strings.Replace(whole, "Requests/sec", "  Target rate: 110.00 requests/sec, 100 requests were due and not sent\nRequests/sec", 1)
	text = strings.Replace(text, "  1000 req", "  Service Distribution (from the real send time)\n     50%    5.00us\n  1000 req", 1)
	text = strings.Replace(text, "    Req/Sec", "    Service     0.20ms  319.37us   1.20m    85.54%\n    Req/Sec", 1)
	r := one(t, text)
	if res := r.Result; r.Err() != nil || res.Rate != 110 || res.Unsent != 100 || res.Latency.MeanWrk != nil || *res.Latency.Mean != 2010 || *res.Latency.P50 != 900 {
		t.Errorf("%+v, %v", res, r.Err())
	}
}

// TestWrk2 reads the percentiles of wrk2, which prints them twice.
func TestWrk2(t *testing.T) {
	t.Parallel()
	text := strings.Replace(whole, "  Latency Distribution\n     50%  900.00us", "  Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000%  900.00us\n 99.900%    3.00ms\n  Latency Distribution (HdrHistogram - Uncorrected)\n 50.000%  100.00us", 1)
	r := one(t, text)
	if l := r.Result.Latency; r.Err() != nil || *l.P50 != 900 || *l.P999 != 3000 || l.P99 != nil {
		t.Errorf("%+v, %v", l, r.Err())
	}
}

// TestFaults damages a run: it says where and what, and keeps the rest.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ old, new, want string }{
		"no unit":         {"2.01ms", "2.01", `line 4: read "Latency     2.01  319.37us   1.20m    85.54%": "2.01" is not a figure with a unit`},
		"unknown unit":    {"2.01ms", "2.01ns", `"2.01ns" is not a figure with a unit`},
		"negative":        {"2.01ms", "-2.01ms", `"-2.01ms" is not a figure`},
		"percentile":      {"900.00us", "x", `line 7: read "50%  x"`},
		"no rate":         {"Requests/sec:    100.00\n", "", `line 14: the run ends without the line "Requests/sec"`},
		"rate":            {":    100.00", ":    inf", `"inf" is not a number`},
		"hexadecimal":     {":    100.00", ":    0x1p-2", `"0x1p-2" is not a number`},
		"no requests":     {"  1000 requests in 10.00s, 1.50KB read\n", "", `without the line "requests in"`},
		"requests":        {"  1000 requests", "  99999999999999999999 requests", "is not a count"},
		"too many":        {"  1000 requests", "  9007199254740993 requests", "is not a count"},
		"too much":        {"1.50KB", "9007199254740991PB", "is too much"},
		"no latency":      {"    Latency ", "    Lat ", `without the line "Latency"`},
		"other figures":   {":    100.00", ":    200.00", "1000 requests in 10.00 s are not 200.00 requests/sec"},
		"connections":     {"and 16", "and 99999999999999999999", "is not a count"},
		"duration":        {"Running 10s", "Running ten", `"ten" is not a figure`},
		"socket errors":   {"connect 1", "connect many", `"many" is not a count`},
		"non-2xx":         {"responses: 5", "responses: 5k", `"5k" is not a count`},
		"ends in between": {"  1000 requests", "\n", `without the line "requests in"`},
		"a huge line":     {"2.01ms", strings.Repeat("9", 1<<20), `without the line "Latency"`},
	} {
		text := strings.Replace(whole, tt.old, tt.new, 1)
		if text == whole {
			t.Fatalf("%s: changes nothing", name)
		}
		r := one(t, text)
		if err := r.Err(); err == nil || !strings.Contains(err.Error(), tt.want) || r.Line != 1 {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

// TestSeveral tells runs apart whatever they lack.
func TestSeveral(t *testing.T) {
	t.Parallel()
	cut := func(from, to string) string {
		_, text, _ := strings.Cut(whole, from)
		before, _, _ := strings.Cut(text, to)
		return from + before + "\n"
	}
	for name, text := range map[string]string{
		"whole":           whole + whole,
		"noise":           "$ wrk http://x/\n" + whole + "Killed\n$\n" + whole + "$ ",
		"no header":       cut("  Thread Stats", "Transfer") + cut("  Thread Stats", "Transfer"),
		"one interrupted": cut("Running", "  Socket") + whole,
		"no end":          cut("Running", "Requests/sec") + cut("Running", "Requests/sec"),
		"only rates":      "Requests/sec: 5.00\nRequests/sec: 6.00\n",
	} {
		runs, err := Parse(strings.NewReader(text))
		if err != nil || len(runs) != 2 {
			t.Errorf("%s: %d runs, %v", name, len(runs), err)
		}
	}
	if runs, err := Parse(strings.NewReader("")); err != nil || len(runs) > 0 {
		t.Errorf("nothing: %d runs, %v", len(runs), err)
	}
}

// TestBounds reads what never ends.
func TestBounds(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		text io.Reader
		want string
	}{
		"an endless line": {endless("x"), "longer than 8 MiB"},
		"endless lines":   {endless("x\n"), "longer than 8 MiB"},
		"endless runs":    {endless("Requests/sec: 1.00\n"), "more than 10000 runs"},
		"a broken reader": {iotest.ErrReader(broken), "broken"},
	} {
		if _, err := Parse(tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	r := one(t, "Latency Distribution\n"+strings.Repeat("50% x\n", 1000))
	if n := len(r.Faults); n != maxFaults {
		t.Errorf("%d faults are kept", n)
	}
	if text := fmt.Sprint(r.Faults); len(text) > maxFaults*200 {
		t.Errorf("they are %d bytes long", len(text))
	}
}

// endless repeats itself.
type endless string

func (e endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = e[i%len(e)]
	}
	return len(b), nil
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(whole))
	f.Fuzz(func(t *testing.T, text []byte) {
		runs, err := Parse(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		last := 0
		for _, r := range runs {
			// What it returns can be saved: finite, and within the schema.
			if _, err := json.Marshal(r); err != nil {
				t.Error(err)
			}
			if r.Line <= last || r.Line > bytes.Count(text, []byte("\n"))+1 {
				t.Errorf("line %d after %d", r.Line, last)
			}
			last = r.Line
			res := r.Result
			if res.Seconds < 0 || res.QPS < 0 || res.Requests > most || res.Bytes > most || len(r.Faults) > maxFaults {
				t.Errorf("%+v", r)
			}
		}
	})
}
