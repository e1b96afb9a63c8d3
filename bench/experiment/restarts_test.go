package experiment

import (
	"strings"
	"testing"
	"time"

	"armrepro/bench"
	"armrepro/bench/load"
	"armrepro/bench/statistics"
)

// started is a result of starts with these requests/s, disturbed where they are
// negative.
func started(settings bench.Settings, qps ...float64) *bench.Result {
	r := &bench.Result{Settings: settings}
	for _, v := range qps {
		verdict := bench.Valid
		if v < 0 {
			verdict = bench.Disturbed
		}
		run := bench.Run{Result: load.Result{QPS: max(v, -v)}}
		r.AddStart(&bench.Result{Verdict: verdict, Scenarios: []bench.ScenarioResult{{Name: "one", Runs: []bench.Run{run}}}})
	}
	return r
}

func TestRepeats(t *testing.T) {
	t.Parallel()
	steady := func(n int) []float64 {
		var qps []float64
		for i := range n {
			qps = append(qps, 1000+float64(i%3))
		}
		return qps
	}
	precise := bench.Settings{Precision: 0.03}
	for _, tt := range []struct {
		name     string
		settings bench.Settings
		qps      []float64
		lasted   time.Duration
		more     bool
	}{
		{"none yet", bench.Settings{Restarts: 2}, nil, 0, true},
		{"one of two", bench.Settings{Restarts: 2}, steady(1), 0, true},
		{"two of two", bench.Settings{Restarts: 2}, steady(2), 0, false},
		{"one of two disturbed", bench.Settings{Restarts: 2}, []float64{1000, -500}, 0, true},
		{"too many disturbed", bench.Settings{Restarts: 2}, []float64{-1, -1, 1000, -1}, 0, false},
		{"too few for a precision", precise, steady(statistics.Least - 1), 0, true},
		{"precise", precise, steady(statistics.Least), 0, false},
		{"not precise", precise, append(steady(statistics.Least), 2000), 0, true},
		{"no time for another", bench.Settings{Precision: 0.03, MaxTimeS: 60}, steady(2), time.Hour, false},
		{"time for another", bench.Settings{Precision: 0.03, MaxTimeS: 3600}, steady(2), time.Minute, true},
		{"nothing but disturbed", precise, make([]float64, 0), 0, true},
	} {
		r := &repeats{
			settings: tt.settings, rule: statistics.Rule{Precision: tt.settings.Precision},
			begun: time.Now(), made: len(tt.qps), lasted: tt.lasted,
		}
		result := started(tt.settings, tt.qps...)
		if got := r.more(result); got != tt.more {
			t.Errorf("%s: more is %v", tt.name, got)
		}
		missed := tt.settings.Precision > 0 && tt.name != "precise"
		if text := r.missed(result); (text != "") != missed || missed && !strings.Contains(text, "± 3 %") {
			t.Errorf("%s: missed %q", tt.name, text)
		}
	}
}
