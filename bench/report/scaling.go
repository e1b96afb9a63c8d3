package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"armrepro/bench"
)

// scalingGrid sets the numbers of workers of a scenario beside each other.
func scalingGrid(r bench.Result, index int) grid {
	s := r.Scenarios[index]
	g := newGrid(r, s, "")
	g.title += ", by number of workers"
	g.setup = fmt.Sprintf("%s, %s, %s a run", plural(r.Settings.Upstreams, "upstream"),
		plural(r.Settings.Connections, "connection"), seconds(r.Settings.DurationS))
	g.header = []string{"Workers", "Requests/sec", "Avg latency", "Efficiency", "Worker CPU"}
	points := scalingPoints(r, index)
	one := points[0]
	var rows []row
	for _, p := range points {
		efficiency := missing
		if p.s.QPS != nil && one.s.QPS != nil && one.workers == 1 && *one.s.QPS > 0 {
			efficiency = percent(*p.s.QPS / *one.s.QPS / float64(p.workers))
		}
		rows = append(rows, row{strconv.Itoa(p.workers), []string{
			figure(p.s.QPS, rate), figure(p.s.LatencyMs, milliseconds), efficiency, workersCPU(p.s.Runs),
		}})
		if !p.verdict.Counts() {
			g.notes = append(g.notes, fmt.Sprintf("%s: %s.", plural(p.workers, "worker"), p.verdict))
		}
	}
	g.groups = []group{{rows: rows}}
	g.notes = append(g.notes, "Efficiency: requests/sec per worker, compared with one worker.")
	return g
}

// scalingPoint is a scenario with so many workers.
type scalingPoint struct {
	workers int
	s       bench.ScenarioResult
	verdict bench.Verdict
}

// scalingPoints are those of a scenario, by workers.
func scalingPoints(r bench.Result, index int) []scalingPoint {
	points := []scalingPoint{{r.Settings.Workers, r.Scenarios[index], r.Standing()}}
	for _, part := range r.Scaling {
		if index < len(part.Scenarios) {
			points = append(points, scalingPoint{part.Workers, part.Scenarios[index], part.Standing()})
		}
	}
	slices.SortStableFunc(points, func(a, b scalingPoint) int { return cmp.Compare(a.workers, b.workers) })
	return points
}

// workersCPU is the range of what each worker used, over all runs.
func workersCPU(runs []bench.Run) string {
	var all []float64
	for _, run := range bench.Complete(runs) {
		all = append(all, run.CPU.Workers...)
	}
	if len(all) == 0 {
		return missing
	}
	least, most := fixed(100*slices.Min(all), 0), fixed(100*slices.Max(all), 0)
	if least == most {
		return most + " %"
	}
	return least + "–" + most + " %"
}

// concurrencyGrid sets the numbers of connections of a scenario beside each other.
func concurrencyGrid(r bench.Result, s bench.ScenarioResult) grid {
	points := slices.Clone(s.Concurrency)
	if first := bench.Complete(s.Runs); len(first) > 0 {
		points = append(points, bench.ConcurrencyRun{Connections: r.Settings.Connections, Run: first[0]})
	}
	slices.SortStableFunc(points, func(a, b bench.ConcurrencyRun) int { return cmp.Compare(a.Connections, b.Connections) })
	var lacking string
	if whole := len(s.Concurrency); whole < len(r.Settings.Concurrency) {
		lacking = fmt.Sprintf("%d of %s measured", whole, plural(len(r.Settings.Concurrency), "further number")+" of connections")
	}
	g := newGrid(r, s, lacking)
	g.title += ", by number of connections"
	g.setup = fmt.Sprintf("%s + %s, %s a run", plural(r.Settings.Workers, "worker"), plural(r.Settings.Upstreams, "upstream"), seconds(r.Settings.DurationS))
	g.header = []string{"Connections", "Requests/sec", "Avg latency", "p50", "p99", "Errors"}
	var rows []row
	for i := range points {
		run := &points[i].Run
		rows = append(rows, row{column(strconv.Itoa(points[i].Connections), *run), []string{
			rate(run.QPS), figure(run.AverageLatency(), microseconds), figure(run.Latency.P50, microseconds),
			figure(run.Latency.P99, microseconds), count(run.Errors.Total()),
		}})
	}
	g.groups = []group{{rows: rows}}
	g.notes = append([]string{frontier(points)}, addedLatency(r, points)...)
	return g
}

// latencyBounds are those of the throughput frontier, in milliseconds.
var latencyBounds = []float64{1, 5, 10, 50, 100}

// frontier is the most requests/s that any number of connections reached within
// each bound of latency and without an error.
func frontier(points []bench.ConcurrencyRun) string {
	text := "Most requests/sec without an error and with a p99 under"
	for i, bound := range latencyBounds {
		best := bench.ConcurrencyRun{}
		for _, p := range points {
			within := p.Run.Latency.P99 != nil && *p.Run.Latency.P99 < 1000*bound
			if within && !p.Run.Cut && p.Run.Errors.Total() == 0 && p.Run.QPS > best.Run.QPS {
				best = p
			}
		}
		reached := missing
		if best.Connections > 0 {
			reached = rate(best.Run.QPS) + " (" + plural(best.Connections, "connection") + ")"
		}
		separator := ","
		if i == 0 {
			separator = ""
		}
		text += fmt.Sprintf("%s %s ms: %s", separator, shortest(bound), reached)
	}
	return text + "."
}

// addedLatency is what the gateway adds to the upstream's latency where a request
// waits for no other.
func addedLatency(r bench.Result, points []bench.ConcurrencyRun) []string {
	if len(points) == 0 || points[0].Connections != 1 {
		return nil
	}
	bare := r.ControlOne
	if r.Settings.Connections == 1 {
		bare = r.Control
	}
	line := "Latency that the gateway adds on one connection: "
	with := points[0].Run.Latency
	if bare == nil || bare.Cut || with.P50 == nil || bare.Latency.P50 == nil || with.P99 == nil || bare.Latency.P99 == nil {
		return []string{line + missing + "."}
	}
	return []string{line + fmt.Sprintf("p50 %s (%s, upstream alone %s), p99 %s (%s, upstream alone %s).",
		microseconds(*with.P50-*bare.Latency.P50), microseconds(*with.P50), microseconds(*bare.Latency.P50),
		microseconds(*with.P99-*bare.Latency.P99), microseconds(*with.P99), microseconds(*bare.Latency.P99))}
}

// partLines say what was measured beside the scenarios.
func partLines(r bench.Result) []string {
	var lines []string
	if e := r.EmptyProxy; e != nil {
		lines = append(lines, emptyProxyLine(r, *e))
	}
	if m := r.Memory; m.After != nil || m.Loaded != nil {
		lines = append(lines, fmt.Sprintf("Memory of the workers: %s before the load, %s under load, %s after a minute without load.",
			figure(m.Idle, size), figure(m.Loaded, size), figure(m.After, size)))
	}
	return lines
}

// emptyProxyLine says what share of an empty proxy the gateway reaches.
func emptyProxyLine(r bench.Result, part bench.Part) string {
	if len(part.Scenarios) == 0 {
		return "Empty proxy on the same OpenResty: " + missing + "."
	}
	empty := part.Scenarios[0]
	line := fmt.Sprintf("Empty proxy on the same OpenResty: %s requests/s, avg latency %s (%s).",
		figure(empty.QPS, rate), figure(empty.LatencyMs, milliseconds), part.Standing())
	if !part.Standing().Counts() || !counts(r) || empty.QPS == nil || *empty.QPS <= 0 {
		return line
	}
	for _, s := range r.Scenarios {
		if s.QPS != nil {
			line += fmt.Sprintf(" %s reaches %s of it in %s.", gatewayName(r.Gateway), percent(*s.QPS / *empty.QPS), scenarioName(s))
		}
	}
	return line
}
