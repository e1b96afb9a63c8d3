package bench

import (
	"slices"
	"testing"
)

// session is what one start measured, with the same figures in each scenario.
func session(verdict Verdict, qps ...float64) *Result {
	r := &Result{Verdict: verdict}
	if verdict == Disturbed {
		r.Warnings = []Warning{{Code: GatewayDisturbed, Text: "others", Disturbed: true}}
	}
	for _, name := range []string{"one", "two"} {
		s := ScenarioResult{Name: name}
		for _, v := range qps {
			s.add(testRun(v))
		}
		r.Scenarios = append(r.Scenarios, s)
	}
	return r
}

func TestAddStart(t *testing.T) {
	t.Parallel()
	r := &Result{Settings: Settings{Restarts: 3, Runs: 2}}
	r.AddStart(session(Valid, 1000, 1010))
	second := session(ValidWithWarnings, 980, 970)
	slices.Reverse(second.Scenarios)
	r.AddStart(second)
	r.AddStart(session(Disturbed, 500, 510))
	if len(r.Starts) != 3 || r.CountedStarts() != 2 || len(r.Scenarios) != 2 || len(r.Scenarios[1].Runs) != 6 {
		t.Fatalf("%d starts, %d count, scenarios %+v", len(r.Starts), r.CountedStarts(), r.Scenarios)
	}
	if !slices.Equal(r.Starts[1].Order, []string{"two", "one"}) {
		t.Errorf("order %v", r.Starts[1].Order)
	}
	s := r.Scenarios[0]
	if got := r.StartMeans(s, (*Run).Throughput); !slices.Equal(got, []float64{1005, 975}) || *s.QPS != 990 {
		t.Errorf("means %v, average %v", got, *s.QPS)
	}
	r.Judge(2)
	if r.Verdict != ValidWithWarnings {
		t.Errorf("verdict %s with two starts that count", r.Verdict)
	}
	for _, code := range []string{StartDisturbed, FewRestarts} {
		if !slices.ContainsFunc(r.Warnings, func(w Warning) bool { return w.Code == code }) {
			t.Errorf("no warning %s", code)
		}
	}
}

func TestJudgeStarts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		starts []*Result
		want   Verdict
	}{
		{"all disturbed", []*Result{session(Disturbed, 500), session(Disturbed, 500)}, Disturbed},
		{"interrupted in the first", []*Result{session(Interrupted, 500)}, Interrupted},
		{"interrupted in a later one", []*Result{session(Valid, 500), session(Interrupted, 500)}, ValidWithWarnings},
		{"one invalid", []*Result{session(Valid, 500), {
			Verdict: Invalid, Warnings: []Warning{{Code: RunErrors, Invalid: true}}, Scenarios: session(Valid, 500).Scenarios,
		}}, Invalid},
	} {
		r := &Result{Settings: Settings{Restarts: 2, Runs: 1}}
		for _, start := range tt.starts {
			r.AddStart(start)
		}
		r.Judge(2)
		if r.Verdict != tt.want {
			t.Errorf("%s: verdict %s, want %s; %v", tt.name, r.Verdict, tt.want, r.Warnings)
		}
	}
}
