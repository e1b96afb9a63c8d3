package report

import (
	"cmp"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"time"

	"armrepro/bench"
	"armrepro/bench/load"
)

// csvHeader names the columns. It only ever grows at its end, so that files of
// different versions can be read by column name or put one after the other.
// Units are in the names; CPU is in cores. A figure that is missing is an
// empty field.
var csvHeader = []string{
	"started", "tool_version", "verdict", "scenario", "run",
	"requests", "seconds", "qps", "bytes", "reconnects", "load_busy", "rate", "unsent",
	"latency_mean_us", "latency_mean_wrk_us", "latency_stdev_us", "latency_max_us",
	"latency_p50_us", "latency_p90_us", "latency_p99_us", "latency_p999_us",
	"service_mean_us", "service_p50_us", "service_p90_us", "service_p99_us", "service_p999_us",
	"errors_connect", "errors_read", "errors_write", "errors_timeout", "errors_status",
	"cpu_gateway_cores", "cpu_gateway_wait_cores", "cpu_upstream_cores", "cpu_load_cores", "cpu_etcd_cores", "cpu_steal_cores",
	"rss_gateway_bytes", "rss_upstream_bytes", "rss_load_bytes", "rss_etcd_bytes",
	"product", "core", "vendor", "implementer", "part", "variant", "revision",
	"cloud", "instance", "hypervisor", "container", "arch", "os", "kernel",
	"page_size_bytes", "cores", "usable_cores", "memory_bytes",
	"gateway_kind", "gateway_name", "gateway_version", "gateway_workers", "gateway_plugins",
	"etcd_version", "etcd_embedded",
	"duration_s", "warmup_s", "connections", "threads", "runs", "workers", "upstreams", "timeout_s",
	"pin_gateway", "pin_upstream", "pin_load",
	"warnings", "label", "openresty_version", "openresty_path", "luajit_version",
	"cut", "upstream_answers", "cpu_others_cores",
	"load_tool", "upstream_tool", "cross_check_qps_ratio", "cross_check_latency_ratio",
}

// controlScenario is the scenario column of the run without the gateway.
const controlScenario = "control"

// crossCheckRun is the run column of a cross-check.
const crossCheckRun = "cross-check"

// writeCSV prints one line a run under a header. The run without the gateway comes
// last, as a scenario of its own.
func writeCSV(out *strings.Builder, results []bench.Result, _ Options) error {
	lines := [][]string{csvHeader}
	for _, r := range results {
		context := csvContext(r)
		add := func(scenario, number string, run *bench.Run, ratios ...*float64) {
			if run == nil {
				return
			}
			generator := r.Tools.Load
			if number == crossCheckRun {
				generator = r.Tools.CrossCheck
			}
			ratios = append(ratios, nil, nil)
			lines = append(lines, slices.Concat(
				[]string{r.Started.UTC().Format(time.RFC3339), csvText(r.Tool.Version), csvText(string(r.Verdict)), csvText(scenario), number},
				csvRun(run), context,
				[]string{strconv.FormatBool(run.Cut), csvFigure(run.UpstreamAnswers, count), csvFigure(run.CPU.Others, csvFloat),
					csvText(program(generator)), csvText(program(r.Tools.Upstream)), csvFigure(ratios[0], csvFloat), csvFigure(ratios[1], csvFloat)}))
		}
		for _, s := range r.Scenarios {
			for i := range s.Runs {
				add(s.Name, strconv.Itoa(i+1), &s.Runs[i])
			}
			if check := s.CrossCheck; check != nil {
				add(s.Name, crossCheckRun, &check.Run, check.QPSRatio, check.LatencyRatio)
			}
			add(s.Name, "maximum", s.Maximum)
			for _, point := range s.Sweep {
				add(s.Name, shortest(100*point.Share)+"%", &point.Run)
			}
		}
		add(controlScenario, "1", r.Control)
	}
	return csv.NewWriter(out).WriteAll(lines)
}

// csvRun is what one run measured.
func csvRun(run *bench.Run) []string {
	l := run.Latency
	fields := []string{count(run.Requests), csvFloat(run.Seconds), csvFloat(run.QPS), count(run.Bytes), csvFigure(run.Reconnects, count),
		csvFigure(run.Busy, csvFloat), csvPositive(run.Rate, csvFloat), csvPositive(run.Unsent, count)}
	service := cmp.Or(run.Service, &load.Latency{})
	for _, v := range []*float64{l.Mean, l.MeanWrk, l.Stdev, l.Max, l.P50, l.P90, l.P99, l.P999,
		service.Mean, service.P50, service.P90, service.P99, service.P999} {
		fields = append(fields, csvFigure(v, csvFloat))
	}
	for _, n := range failures(run) {
		fields = append(fields, count(n))
	}
	for _, v := range []*float64{run.CPU.Gateway, run.CPU.GatewayWait, run.CPU.Upstream,
		run.CPU.Load, run.CPU.Etcd, run.CPU.Steal} {
		fields = append(fields, csvFigure(v, csvFloat))
	}
	for _, v := range memory(run) {
		fields = append(fields, csvFigure(v, count))
	}
	return fields
}

// csvContext is what all runs of a result share.
func csvContext(r bench.Result) []string {
	m, g, s := r.Machine, r.Gateway, r.Settings
	pins, openResty := cmp.Or(s.Pins, &bench.Pins{}), cmp.Or(g.OpenResty, &bench.OpenRestyInfo{})
	return []string{
		csvText(m.CPU.Product), csvText(m.CPU.Core), csvText(m.CPU.Vendor),
		csvText(m.CPU.Implementer), csvText(m.CPU.Part), csvText(m.CPU.Variant), csvText(m.CPU.Revision),
		csvText(m.Cloud), csvText(m.Instance), csvText(m.Hypervisor), csvText(m.Container), csvText(m.Arch), csvText(m.OS), csvText(m.Kernel),
		csvPositive(m.PageSize, strconv.Itoa), csvPositive(m.Cores, strconv.Itoa),
		csvPositive(m.UsableCores, csvFloat), csvPositive(m.MemoryBytes, count),
		csvText(g.Kind), csvText(g.Name), csvText(g.Version),
		csvFigure(g.Workers, strconv.Itoa), csvText(strings.Join(g.Plugins, " ")),
		csvText(r.Etcd.Version), strconv.FormatBool(r.Etcd.Embedded),
		csvFloat(s.DurationS), csvFloat(s.WarmupS), strconv.Itoa(s.Connections), strconv.Itoa(s.Threads),
		strconv.Itoa(s.Runs), strconv.Itoa(s.Workers), strconv.Itoa(s.Upstreams), csvFloat(s.TimeoutS),
		csvText(pins.Gateway), csvText(pins.Upstream), csvText(pins.Load),
		csvText(strings.Join(each(r.Warnings, func(w bench.Warning) string { return w.Code }), " ")),
		csvText(r.Label), csvText(openResty.Version), csvText(openResty.Path), csvText(openResty.LuaJIT),
	}
}

// csvText keeps a spreadsheet from taking a text for a formula.
func csvText(s string) string {
	s = clean(s)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}

// csvFloat prints the shortest decimal that reads back as v.
func csvFloat(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// csvFigure leaves the field empty for a missing figure.
func csvFigure[T any](v *T, format func(T) string) string {
	if v == nil {
		return ""
	}
	return format(*v)
}

// csvPositive does so for the zero of an unknown one.
func csvPositive[T int | uint64 | float64](n T, format func(T) string) string {
	if n <= 0 {
		return ""
	}
	return format(n)
}
