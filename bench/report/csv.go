package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"armrepro/bench"
	"armrepro/bench/load"
)

// csvLine is what a line is printed from. The run without the gateway is a scenario
// of its own, control.
type csvLine struct {
	bench.Result
	scenario, number string
	run              *bench.Run
	// generator is what loaded, nil for armrepro's own.
	generator *bench.External
	// ratios are those of a cross-check.
	ratios bench.CrossCheck
}

// columns are the names of the columns, each followed by its value. They only ever
// grow at their end, so that files of different versions can be read by column name
// or put one after the other. Units are in the names; CPU is in cores.
func (l csvLine) columns() []any {
	r, m, c, g, s := l.run, l.Machine, l.Machine.CPU, l.Gateway, l.Settings
	service, pins := cmp.Or(r.Service, &load.Latency{}), cmp.Or(s.Pins, &bench.Pins{})
	openResty := cmp.Or(g.OpenResty, &bench.OpenRestyInfo{})
	warnings := each(l.Warnings, func(w bench.Warning) string { return w.Code })
	return []any{
		"started", l.Started.UTC().Format(time.RFC3339), "tool_version", l.Tool.Version, "verdict", l.Verdict,
		"scenario", l.scenario, "run", l.number,
		"requests", r.Requests, "seconds", r.Seconds, "qps", r.QPS, "bytes", r.Bytes, "reconnects", r.Reconnects,
		"load_busy", r.Busy, "rate", unlessZero(r.Rate), "unsent", unlessZero(r.Unsent),
		"latency_mean_us", r.Latency.Mean, "latency_mean_wrk_us", r.Latency.MeanWrk,
		"latency_stdev_us", r.Latency.Stdev, "latency_max_us", r.Latency.Max, "latency_p50_us", r.Latency.P50,
		"latency_p90_us", r.Latency.P90, "latency_p99_us", r.Latency.P99, "latency_p999_us", r.Latency.P999,
		"service_mean_us", service.Mean, "service_p50_us", service.P50, "service_p90_us", service.P90,
		"service_p99_us", service.P99, "service_p999_us", service.P999,
		"errors_connect", r.Errors.Connect, "errors_read", r.Errors.Read, "errors_write", r.Errors.Write,
		"errors_timeout", r.Errors.Timeout, "errors_status", r.Errors.Status,
		"cpu_gateway_cores", r.CPU.Gateway, "cpu_gateway_wait_cores", r.CPU.GatewayWait, "cpu_upstream_cores", r.CPU.Upstream,
		"cpu_load_cores", r.CPU.Load, "cpu_etcd_cores", r.CPU.Etcd, "cpu_steal_cores", r.CPU.Steal,
		"rss_gateway_bytes", r.RSS.Gateway, "rss_upstream_bytes", r.RSS.Upstream,
		"rss_load_bytes", r.RSS.Load, "rss_etcd_bytes", r.RSS.Etcd,
		"product", c.Product, "core", c.Core, "vendor", c.Vendor, "implementer", c.Implementer,
		"part", c.Part, "variant", c.Variant, "revision", c.Revision,
		"cloud", m.Cloud, "instance", m.Instance, "hypervisor", m.Hypervisor, "container", m.Container,
		"arch", m.Arch, "os", m.OS, "kernel", m.Kernel, "page_size_bytes", unlessZero(m.PageSize), "cores", unlessZero(m.Cores),
		"usable_cores", unlessZero(m.UsableCores), "memory_bytes", unlessZero(m.MemoryBytes),
		"gateway_kind", g.Kind, "gateway_name", g.Name, "gateway_version", g.Version, "gateway_workers", g.Workers,
		"gateway_plugins", strings.Join(g.Plugins, " "), "etcd_version", l.Etcd.Version, "etcd_embedded", l.Etcd.Embedded,
		"duration_s", s.DurationS, "warmup_s", s.WarmupS, "connections", s.Connections, "threads", s.Threads, "runs", s.Runs,
		"workers", s.Workers, "upstreams", s.Upstreams, "timeout_s", s.TimeoutS,
		"pin_gateway", pins.Gateway, "pin_upstream", pins.Upstream, "pin_load", pins.Load,
		"warnings", strings.Join(warnings, " "), "label", l.Label, "openresty_version", openResty.Version,
		"openresty_path", openResty.Path, "luajit_version", openResty.LuaJIT,
		"cut", r.Cut, "upstream_answers", r.UpstreamAnswers, "cpu_others_cores", r.CPU.Others,
		"load_tool", program(l.generator), "upstream_tool", program(l.Tools.Upstream),
		"cross_check_qps_ratio", l.ratios.QPSRatio, "cross_check_latency_ratio", l.ratios.LatencyRatio,
		"start", unlessZero(r.Start),
	}
}

// writeCSV prints one line a run under a header.
func writeCSV(out *strings.Builder, results []bench.Result, _ Options) error {
	w := csv.NewWriter(out)
	every := func(first int, columns []any) []string {
		var fields []string
		for i := first; i < len(columns); i += 2 {
			fields = append(fields, csvField(columns[i]))
		}
		return fields
	}
	err := w.Write(every(0, csvLine{run: &bench.Run{}}.columns()))
	for _, r := range results {
		for _, line := range csvLines(r) {
			err = cmp.Or(err, w.Write(every(1, line.columns())))
		}
	}
	w.Flush()
	return cmp.Or(err, w.Error())
}

// csvLines are the lines of a result. The run without the gateway comes last.
func csvLines(r bench.Result) []csvLine {
	var lines []csvLine
	add := func(scenario, number string, run *bench.Run) *csvLine {
		if run == nil {
			return &csvLine{}
		}
		lines = append(lines, csvLine{Result: r, scenario: scenario, number: number, run: run, generator: r.Tools.Load})
		return &lines[len(lines)-1]
	}
	for _, s := range r.Scenarios {
		for i := range s.Runs {
			add(s.Name, strconv.Itoa(i+1), &s.Runs[i])
		}
		if check := s.CrossCheck; check != nil {
			line := add(s.Name, "cross-check", &check.Run)
			line.generator, line.ratios = r.Tools.CrossCheck, *check
		}
		add(s.Name, "maximum", s.Maximum)
		for _, point := range s.Sweep {
			add(s.Name, shortest(100*point.Share)+"%", &point.Run)
		}
		for _, point := range s.Concurrency {
			add(s.Name, "1", &point.Run).Settings.Connections = point.Connections
		}
	}
	for _, part := range parts(r) {
		lines = append(lines, csvLines(part)...)
	}
	add("control", "1", r.Control)
	add("control", "1", r.ControlOne).Settings.Connections = 1
	return lines
}

// parts are what was measured on other gateways, as results of their own.
func parts(r bench.Result) []bench.Result {
	var results []bench.Result
	for _, part := range slices.Concat(r.Scaling, list(r.EmptyProxy)) {
		whole := r
		whole.Verdict, whole.Warnings, whole.Scenarios = part.Standing(), part.Warnings, part.Scenarios
		whole.Settings.Workers, whole.Settings.Threads, whole.Settings.Pins = part.Workers, part.Threads, part.Pins
		whole.Gateway.Workers = &part.Workers
		whole.Starts, whole.Scaling, whole.EmptyProxy, whole.Control, whole.ControlOne = nil, nil, nil, nil, nil
		results = append(results, whole)
	}
	return results
}

// list is *v alone, or nothing.
func list[T any](v *T) []T {
	if v == nil {
		return nil
	}
	return []T{*v}
}

// unlessZero is v, or nil where its zero stands for an unknown figure.
func unlessZero[T int | uint64 | float64](v T) *T {
	if v == 0 {
		return nil
	}
	return &v
}

// csvField prints a value; a figure that is missing, a nil pointer, is an empty field.
func csvField(v any) string {
	switch value := reflect.Indirect(reflect.ValueOf(v)); value.Kind() {
	case reflect.Invalid:
		return ""
	case reflect.String:
		return csvText(value.String())
	case reflect.Float64:
		// The shortest decimal that reads back as the value.
		return strconv.FormatFloat(value.Float(), 'f', -1, 64)
	default:
		return fmt.Sprint(value.Interface())
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
