package main

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"armrepro/bench/load"
)

// The outputs are recorded: wrk 4.1.0 and armrepro load on a fast server, wrk
// with -c10000 on an overloaded one, wrk on one that answers 404, both on one
// that never answers.
const (
	wrkFast = `Running 1s test @ http://127.0.0.1:11991/
  2 threads and 16 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     8.95ms   28.36ms 177.42ms   91.31%
    Req/Sec    37.37k    18.65k   67.43k    66.67%
  Latency Distribution
     50%  132.00us
     75%  239.00us
     90%   24.81ms
     99%  150.10ms
  56636 requests in 1.11s, 9.51MB read
Requests/sec:  50844.73
Transfer/sec:      8.53MB
`
	loadFast = `Running 3s test @ http://127.0.0.1:11991/
  2 threads and 10000 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   100.07ms   37.01ms 327.71ms   82.77%
    Req/Sec    48.76k    15.26k   68.46k    80.00%
  Latency Distribution
     50%   89.66ms
     75%  101.67ms
     90%  150.53ms
     99%  247.62ms
  264878 requests in 3.02s, 44.46MB read
Requests/sec:  87585.44
Transfer/sec:    14.70MB
`
	wrkOverloaded = `Running 3s test @ http://127.0.0.1:11991/
  2 threads and 10000 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   135.24ms   32.04ms 187.50ms   68.42%
    Req/Sec   740.50    265.17     0.93k   100.00%
  7603 requests in 7.24s, 1.28MB read
  Socket errors: connect 0, read 0, write 0, timeout 3043
Requests/sec:   1050.59
Transfer/sec:    180.57KB
`
)

const (
	wrkNotFound = `Running 1s test @ http://127.0.0.1:12992/nope
  1 threads and 2 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     2.04ms    2.04ms  16.03ms   87.32%
    Req/Sec     1.15k   324.02     1.54k    60.00%
  1142 requests in 1.00s, 579.92KB read
  Non-2xx or 3xx responses: 1142
Requests/sec:   1141.63
Transfer/sec:    579.74KB
`
	wrkSilence = `Running 1s test @ http://127.0.0.1:12991/
  1 threads and 2 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     0.00us    0.00us   0.00us    -nan%
    Req/Sec     0.00      0.00     0.00      -nan%
  Latency Distribution
     50%    0.00us
     75%    0.00us
     90%    0.00us
     99%    0.00us
  0 requests in 1.03s, 0.00B read
Requests/sec:      0.00
Transfer/sec:       0.00B
`
	loadSilence = `Running 1s test @ http://127.0.0.1:12991/
  1 threads and 2 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency        -         -        -         -
    Req/Sec        -         -        -         -
  0 requests in 1.00s, 0.00B read
Requests/sec:      0.00
Transfer/sec:      0.00B
`
)

var nan = math.NaN()

func TestParseOutput(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want output
	}{
		"wrk":        {wrkFast, output{56636, 50844.73, 8950, 132, 24810, 150100, load.Errors{}}},
		"load":       {loadFast, output{264878, 87585.44, 100070, 89660, 150530, 247620, load.Errors{}}},
		"overloaded": {wrkOverloaded, output{7603, 1050.59, 135240, nan, nan, nan, load.Errors{Timeout: 3043}}},
		"not found":  {wrkNotFound, output{1142, 1141.63, 2040, nan, nan, nan, load.Errors{Status: 1142}}},
		"silence":    {wrkSilence, output{0, 0, nan, nan, nan, nan, load.Errors{}}},
		"own":        {loadSilence, output{0, 0, nan, nan, nan, nan, load.Errors{}}},
		"all errors": {
			strings.Replace(wrkFast, "Requests/sec", "  Socket errors: connect 1, read 2, write 3, timeout 4\nRequests/sec", 1),
			output{56636, 50844.73, 8950, 132, 24810, 150100, load.Errors{Connect: 1, Read: 2, Write: 3, Timeout: 4}},
		},
	} {
		got, err := parseOutput(test.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(output{}), cmp.Comparer(sameFloat)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func sameFloat(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-9*math.Abs(a)
}

func TestParseOutputErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"nothing":    {"", "lacks the number of requests"},
		"broken off": {wrkFast[:strings.Index(wrkFast, "Requests/sec")], "lacks the number of requests"},
		"no count":   {strings.Replace(wrkFast, "56636 requests", "many requests", 1), `parse line "many requests in`},
		"no rate":    {strings.Replace(wrkFast, "50844.73", "5e4", 1), `"5e4" is no number`},
		"two points": {strings.Replace(wrkFast, "50844.73", "5.0.8", 1), `"5.0.8" is no number`},
		"no unit":    {strings.Replace(wrkFast, "8.95ms", "8.95", 1), `"8.95" has no unit of time`},
		"percentile": {strings.Replace(wrkFast, "24.81ms", "-nan", 1), `"-nan" has no unit of time`},
		"errors":     {strings.Replace(wrkOverloaded, "read 0", "read -1", 1), `parse line "Socket errors`},
		"statuses":   {strings.Replace(wrkNotFound, "responses: 1142", "responses: x", 1), `parse line "Non-2xx`},
	} {
		if _, err := parseOutput(test.text); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestParseLatency(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		"0.00us": 0, "226.30us": 226.3, "10.10ms": 10100, "1.50s": 1.5e6, "2.00m": 120e6, "1.00h": 3600e6, "-": nan,
	} {
		if got, err := parseLatency(text); err != nil || !sameFloat(got, want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}

func FuzzParseOutput(f *testing.F) {
	for _, seed := range []string{wrkFast, loadFast, wrkOverloaded, wrkNotFound, wrkSilence, loadSilence, ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := parseOutput(text)
		if err != nil {
			return
		}
		for _, n := range []float64{o.qps, o.mean, o.p50, o.p90, o.p99} {
			if n < 0 || math.IsInf(n, 0) {
				t.Errorf("%v in %+v", n, o)
			}
		}
		if o.requests == 0 && !math.IsNaN(o.mean) {
			t.Errorf("a latency without a request: %+v", o)
		}
	})
}

func TestParseExact(t *testing.T) {
	t.Parallel()
	got, err := parseExact(`{"requests":56636,"bytes":9967701}` + "\n")
	if want := (exact{56636, 9967701}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for text, want := range map[string]string{
		"":                              "unexpected end",
		"unable to connect":             "invalid character",
		`{"requests":-1,"bytes":1}`:     "cannot unmarshal",
		`{"requests":0,"bytes":0}`:      "no answer",
		`{"requests":1}`:                "no answer",
		`{"requests":1,"bytes":2} more`: "invalid character",
	} {
		if _, err := parseExact(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseExact(f *testing.F) {
	f.Add(`{"requests":56636,"bytes":9967701}`)
	f.Add(`{"requests":1e99,"bytes":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		if e, err := parseExact(text); err == nil && (e.Requests == 0 || e.Bytes == 0) {
			t.Errorf("%+v", e)
		}
	})
}
