package fitness

import (
	"slices"
	"strings"
	"testing"

	"armrepro/bench/machine"

	"github.com/google/go-cmp/cmp"
)

// flat has n CPUs, each a core.
func flat(n int) []machine.LogicalCPU {
	var cpus []machine.LogicalCPU
	for i := range n {
		cpus = append(cpus, machine.LogicalCPU{ID: i, Siblings: []int{i}})
	}
	return cpus
}

// threaded has n cores of two threads each, numbered as x86 kernels do it: the
// second threads after all the first ones.
func threaded(n int) []machine.LogicalCPU {
	var cpus []machine.LogicalCPU
	for i := range 2 * n {
		cpus = append(cpus, machine.LogicalCPU{ID: i, Siblings: []int{i % n, i%n + n}})
	}
	return cpus
}

func TestPlanPins(t *testing.T) {
	t.Parallel()
	bigLittle := flat(8)
	for i := range bigLittle {
		bigLittle[i].Capacity = 500
		if i < 4 {
			bigLittle[i].Capacity = 1024
		}
	}
	for _, tt := range []struct {
		name    string
		cpus    []machine.LogicalCPU
		workers int
		mode    string
		want    Pins
	}{
		{name: "none", cpus: flat(8), workers: 1, mode: PinNone},
		{name: "two cores", cpus: flat(2), workers: 1, mode: PinAuto},
		{name: "three cores", cpus: flat(3), workers: 1, mode: PinAuto},
		{
			name: "four cores", cpus: flat(4), workers: 1, mode: PinAuto,
			want: Pins{Gateway: []int{3}, Upstream: []int{0}, Load: []int{1, 2}, Others: []int{0, 1, 2}},
		},
		{
			name: "four cores, two workers", cpus: flat(4), workers: 2, mode: PinAuto,
			want: Pins{Gateway: []int{2, 3}, Upstream: []int{0}, Load: []int{1}, Others: []int{0, 1}},
		},
		{name: "four cores, three workers", cpus: flat(4), workers: 3, mode: PinAuto},
		{
			name: "two cores of two threads: the worker's sibling stays idle", cpus: threaded(2), workers: 1, mode: PinAuto,
			want: Pins{Gateway: []int{3}, Upstream: []int{0}, Load: []int{2}, Others: []int{0, 2}},
		},
		{
			name: "two cores of two threads, two workers: siblings cannot be avoided", cpus: threaded(2), workers: 2, mode: PinAuto,
			want: Pins{Gateway: []int{2, 3}, Upstream: []int{0}, Load: []int{1}, Others: []int{0, 1}, SharedThreads: true},
		},
		{
			name: "four cores of two threads, two workers on different cores", cpus: threaded(4), workers: 2, mode: PinAuto,
			want: Pins{Gateway: []int{6, 7}, Upstream: []int{0, 1}, Load: []int{4, 5}, Others: []int{0, 1, 4, 5}},
		},
		{
			name: "the strongest core", cpus: bigLittle, workers: 1, mode: PinAuto,
			want: Pins{Gateway: []int{3}, Upstream: []int{0, 1, 2}, Load: []int{4, 5, 6, 7}, Others: []int{0, 1, 2, 4, 5, 6, 7}},
		},
		{
			name: "a list", cpus: flat(4), workers: 1, mode: "1",
			want: Pins{Gateway: []int{1}, Upstream: []int{0}, Load: []int{2, 3}, Others: []int{0, 2, 3}},
		},
		{
			name: "a list on two cores", cpus: flat(2), workers: 1, mode: "1",
			want: Pins{Gateway: []int{1}, Upstream: []int{0}, Load: []int{0}, Others: []int{0}},
		},
		{
			name: "a list on one core of two threads", cpus: threaded(1), workers: 1, mode: "0",
			want: Pins{Gateway: []int{0}, Upstream: []int{1}, Load: []int{1}, Others: []int{1}, SharedThreads: true},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := PlanPins(tt.cpus, tt.workers, tt.mode)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("PlanPins (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanPinsErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		mode    string
		workers int
		want    string
	}{
		{"", 1, "empty"},
		{"4", 1, "CPU 4 is not usable; the usable CPUs are 0-3"},
		{"0-3", 1, "leaves no CPU"},
		{"x", 1, `"x" is not the number of a CPU`},
		{"3-1", 1, "runs backwards"},
		{"3", 2, "fewer CPUs (1) than gateway workers (2)"},
	} {
		if got, err := PlanPins(flat(4), tt.workers, tt.mode); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("PlanPins(%q) = %+v, %v, want an error with %q", tt.mode, got, err, tt.want)
		}
	}
}

// Whatever the machine, nobody shares a CPU with the gateway, and each part has
// one.
func FuzzPlanPins(f *testing.F) {
	f.Add(4, 1, 1, PinAuto)
	f.Add(8, 2, 3, "0-2")
	f.Add(64, 4, 60, PinAuto)
	f.Fuzz(func(t *testing.T, n, threads, workers int, mode string) {
		n, threads, workers = abs(n)%256+1, abs(threads)%8+1, abs(workers)%300
		cpus := flat(n)
		for i := range cpus {
			cpus[i].Siblings = nil
			for j := range n {
				if j/threads == i/threads {
					cpus[i].Siblings = append(cpus[i].Siblings, j)
				}
			}
		}
		p, err := PlanPins(cpus, workers, mode)
		if err != nil || len(p.Gateway) == 0 {
			if !cmp.Equal(p, Pins{}) && len(p.Others) == 0 {
				t.Errorf("%+v, %v", p, err)
			}
			return
		}
		if len(p.Upstream) == 0 || len(p.Load) == 0 || len(p.Others) == 0 {
			t.Errorf("%+v leaves somebody without a CPU", p)
		}
		for _, id := range slices.Concat(p.Upstream, p.Load, p.Others) {
			if slices.Contains(p.Gateway, id) {
				t.Errorf("%+v: CPU %d is the gateway's", p, id)
			}
		}
	})
}

func abs(n int) int {
	return max(n, -(n + 1)) // -n of the least number is itself
}
