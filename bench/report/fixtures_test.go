package report

import (
	"time"

	"armrepro/bench"
	"armrepro/bench/fitness"
	"armrepro/bench/load"
	"armrepro/bench/machine"
)

// fixtures are the results that the goldens and the schema test print. They
// are functions, since every test changes its own.
var fixtures = map[string]func() bench.Result{
	"valid":       validResult,
	"warnings":    warningsResult,
	"invalid":     invalidResult,
	"interrupted": interruptedResult,
	"disturbed":   disturbedResult,
	"one-run":     oneRunResult,
	"stalls":      stallsResult,
	"missing":     missingResult,
	"builtin":     builtinResult,
	"many-runs":   manyRunsResult,
	"many-plugins": func() bench.Result {
		r := validResult()
		r.Gateway.Plugins = manyPlugins
		return r
	},
	"sweep":       sweepResult,
	"scaling":     scalingResult,
	"restarts":    restartsResult,
	"tools":       toolsResult,
	"cross-check": crossCheckResult,
	"wide":        wideResult,
	"hostile":     hostileResult,
}

// validResult has the figures of the published measurement on an Ampere A1.
func validResult() bench.Result {
	return bench.Result{
		Schema:  bench.Schema,
		Tool:    bench.Tool{Name: "armrepro", Version: "v0.1.0"},
		Started: time.Date(2026, 9, 28, 10, 56, 52, 0, time.UTC),
		Machine: machine.Machine{
			CPU: machine.CPU{MIDR: machine.MIDR{Implementer: "0x41", Part: "0xd0c", Variant: "0x3", Revision: "1"}, Vendor: "Arm", BogoMIPS: 50, Frequency: machine.Frequency{MeasuredMHz: 2994},
				Core: "Neoverse N1", Product: "Ampere Altra"},
			Cloud: "OCI", Instance: "VM.Standard.A1.Flex", Arch: "arm64", Kernel: "5.15.0-1018-oracle", OS: "Ubuntu 22.04",
			PageSize: 4096, Cores: 2, UsableCores: 2, MemoryBytes: 4093124608, Hypervisor: "KVM", Container: "none",
			Mitigations: map[string]string{"spectre_v1": "Mitigation: __user pointer sanitization", "spec_store_bypass": "Vulnerable"},
		},
		Unchecked: []fitness.Unchecked{{Code: fitness.Governor, Why: "no CPU has a cpufreq policy"}},
		Gateway: bench.GatewayInfo{Kind: "native", Name: "APISIX", Version: "2.15.0", Workers: new(1),
			Plugins:   []string{"limit-count", "prometheus"},
			OpenResty: &bench.OpenRestyInfo{Version: "1.21.4.1", Path: "/usr/local/openresty/nginx/sbin/nginx", LuaJIT: "2.1.0-beta3", Modules: []string{}}},
		Etcd: bench.EtcdInfo{Version: "3.7.3", Embedded: true},
		Settings: bench.Settings{DurationS: 60, WarmupS: 5, Connections: 16, Threads: 2, Runs: 2,
			Workers: 1, Upstreams: 1, TimeoutS: 2, Pins: &bench.Pins{Gateway: "3", Upstream: "0", Load: "1-2"}},
		Scenarios: []bench.ScenarioResult{
			scenario("single-upstream", "single upstream, no plugin", run(15640.38, 1020), run(15550.03, 1030)),
			scenario("two-plugins", "single upstream + two plugins (limit-count, prometheus)",
				run(12248.00, 1310), run(12271.99, 1300)),
		},
		Control:  new(withoutGateway(run(52310.77, 301))),
		Warnings: []bench.Warning{},
		Verdict:  bench.Valid,
	}
}

var (
	wrkTool   = &bench.External{Name: "wrk", Version: "4.2.0", Path: "/usr/bin/wrk"}
	nginxTool = &bench.External{Name: "nginx", Version: "1.22.1", Path: "/usr/sbin/nginx"}
)

// toolsResult was measured with the posts' own tools.
func toolsResult() bench.Result {
	r := validResult()
	r.Tools = bench.Tools{Load: wrkTool, Upstream: nginxTool}
	for i := range r.Scenarios {
		for j := range r.Scenarios[i].Runs {
			asWrk(&r.Scenarios[i].Runs[j])
		}
	}
	asWrk(r.Control)
	return r
}

// asWrk takes from a run what wrk does not tell.
func asWrk(run *bench.Run) {
	run.Reconnects, run.Busy, run.Histogram = nil, nil, ""
	run.Latency.Mean, run.Latency.P999 = nil, nil
}

// crossCheckResult has one that counts and one that does not.
func crossCheckResult() bench.Result {
	r := validResult()
	r.Tools.CrossCheck = wrkTool
	for i, qps := range []float64{15290, 12100} {
		check := run(qps, 1050)
		asWrk(&check)
		check.CPU.Load = new(0.21)
		r.Scenarios[i].CrossCheck = &bench.CrossCheck{Run: check}
	}
	first := r.Scenarios[0].CrossCheck
	first.QPSRatio, first.LatencyRatio = new(1.02), new(0.976)
	r.Verdict = bench.ValidWithWarnings
	r.Warnings = []bench.Warning{{Code: bench.CrossChecked, Text: "two-plugins, cross-check: errors: connect 0, read 3, write 0, timeout 0, status above 399 0"}}
	return r
}

// sweepResult was measured at a share of the maximum, and at others besides.
func sweepResult() bench.Result {
	r := validResult()
	r.Settings.RateShare = 0.75
	r.Settings.Sweep = []float64{0.1, 0.5, 0.905}
	atRate := func(rate float64) bench.Run {
		v := run(rate-0.5, 700)
		v.Rate, v.Latency.MeanWrk = rate, nil
		service := v.Latency
		service.P99 = new(500.0)
		v.Service = &service
		return v
	}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		s.Maximum = new(run(16000, 1000))
		s.Runs = []bench.Run{atRate(12000), atRate(12000)}
		s.QPS, s.LatencyMs = new(11999.5), new(0.7)
		for _, share := range r.Settings.Sweep {
			s.Sweep = append(s.Sweep, bench.SweepRun{Share: share, Run: atRate(16000 * share)})
		}
		s.Sweep[2].Run.Unsent = 321
	}
	return r
}

func warningsResult() bench.Result {
	r := validResult()
	r.Verdict = bench.ValidWithWarnings
	r.Warnings = []bench.Warning{
		{Code: "spread", Text: "the runs of scenario 1 differ by 7.4 % of their mean",
			Hint: "stop other programs, or measure longer: --duration 120s --runs 5"},
		{Code: "shared-cores", Text: "the gateway and the load generator share 2 cores",
			Hint: "a machine with 4 cores or more lets each have its own"},
		{Code: "steal", Text: "the hypervisor withheld 3.1 % of the machine"},
	}
	return r
}

func invalidResult() bench.Result {
	r := validResult()
	r.Verdict = bench.Invalid
	r.Scenarios[1].Runs[0].Errors = load.Errors{Status: 1204, Timeout: 3}
	r.Scenarios[1].Runs[1].Errors = load.Errors{Status: 980}
	r.Gateway.Workers = new(2)
	r.Warnings = []bench.Warning{
		{Code: "errors", Scenario: "two-plugins", Text: "two-plugins, run 1: 2187 errors", Invalid: true,
			Hint: "look at the gateway's error log"},
		{Code: "workers", Text: "2 workers were counted running, 1 was asked for", Invalid: true,
			Hint: "stop the other gateway on port 9080"},
		{Code: "steal", Text: "the hypervisor withheld 3.1 % of the machine"},
	}
	return r
}

func interruptedResult() bench.Result {
	r := validResult()
	r.Verdict = bench.Interrupted
	whole, stopped := run(15640.38, 1020), run(15011.2, 1100)
	stopped.Cut, stopped.Seconds, stopped.Requests = true, 21.52, 323041
	first := scenario("single-upstream", "single upstream, no plugin", whole)
	first.Runs = append(first.Runs, stopped)
	r.Scenarios = []bench.ScenarioResult{
		first,
		{Name: "two-plugins", Title: "single upstream + two plugins (limit-count, prometheus)", Runs: []bench.Run{}},
	}
	r.Control = nil
	return r
}

// disturbedResult has lost its worker's core to other processes.
func disturbedResult() bench.Result {
	r := warningsResult()
	r.Verdict = bench.Disturbed
	r.Control.Cut, r.Control.Seconds = true, 2.5
	r.Scenarios[0].Runs[1].CPU.GatewayWait = new(0.214)
	r.Scenarios[0].Runs[1].CPU.Others = new(0.832)
	r.Warnings = append(r.Warnings, bench.Warning{Code: "gateway-disturbed", Scenario: "single-upstream", Disturbed: true,
		Text: "single-upstream, run 2: other processes took the core of a worker of the gateway for 21.4 % of the time", Hint: "stop them"})
	return r
}

// oneRunResult is of a machine that only its label names.
func oneRunResult() bench.Result {
	r := validResult()
	r.Label = "shelf 3"
	r.Machine.Cloud, r.Machine.Instance = "", ""
	r.Settings.Runs = 1
	for i := range r.Scenarios {
		s := r.Scenarios[i]
		r.Scenarios[i] = scenario(s.Name, s.Title, s.Runs[0])
	}
	return r
}

// stallsResult has stalls that are most of wrk's mean.
func stallsResult() bench.Result {
	r := validResult()
	s := r.Scenarios[0]
	for i := range s.Runs {
		s.Runs[i].Latency.Mean = new(2116.0)
	}
	s.Runs[0].Latency.MeanWrk, s.Runs[1].Latency.MeanWrk = new(10193.0), new(2120.0)
	r.Scenarios[0] = scenario(s.Name, s.Title, s.Runs...)
	return r
}

// missingResult has no figure that may be missing.
func missingResult() bench.Result {
	r := validResult()
	r.Machine = machine.Machine{}
	r.Gateway = bench.GatewayInfo{Kind: "attach", Name: "APISIX"}
	r.Etcd = bench.EtcdInfo{}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		s.QPS, s.LatencyMs = nil, nil
		for j := range s.Runs {
			s.Runs[j] = bench.Run{Result: load.Result{Seconds: 60}}
		}
	}
	r.Control = &bench.Run{}
	return r
}

func builtinResult() bench.Result {
	r := validResult()
	r.Machine = machine.Machine{
		CPU:  machine.CPU{Product: "Intel Xeon Platinum 8370C"},
		Arch: "amd64", Kernel: "6.1.0-40-amd64", PageSize: 4096, Cores: 2, MemoryBytes: 8 << 30,
	}
	r.Gateway = bench.GatewayInfo{Kind: "builtin", Name: "armrepro-builtin", Version: "v0.1.0", Workers: new(1),
		Plugins: []string{"limit-count", "prometheus"}}
	r.Settings.DurationS, r.Settings.WarmupS = 2.5, 0.5
	return r
}

func manyRunsResult() bench.Result {
	r := validResult()
	r.Settings.Runs = 5
	for i := range r.Scenarios {
		s := r.Scenarios[i]
		r.Scenarios[i] = scenario(s.Name, s.Title, append(s.Runs,
			run(15601.5, 1024.5), run(15410.99, 1041), run(15700.1, 1018))...)
	}
	return r
}

// scalingResult has all that is measured beside the scenarios.
func scalingResult() bench.Result {
	r := validResult()
	r.Settings.Scaling, r.Settings.Concurrency = []int{4, 2}, []int{1, 64}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		s.Concurrency = []bench.ConcurrencyRun{{Connections: 1, Run: run(6100.5, 160)}, {Connections: 64, Run: run(16010.25, 3990)}}
	}
	r.Scenarios[1].Concurrency[1].Run.Errors.Timeout = 3
	for _, workers := range r.Settings.Scaling {
		n := float64(workers)
		a, b := run(15000*n, 1020/n), run(14900*n, 1030/n)
		a.CPU.Workers, b.CPU.Workers = []float64{0.91, 0.55}, []float64{0.93, 0.87}
		part := bench.Part{Workers: workers, Threads: workers, Verdict: bench.Valid, Warnings: []bench.Warning{}}
		for _, s := range r.Scenarios {
			part.Scenarios = append(part.Scenarios, scenario(s.Name, s.Title, a, b))
		}
		r.Scaling = append(r.Scaling, part)
	}
	r.Scaling[0].Verdict = bench.ValidWithWarnings
	r.Scaling[0].Warnings = []bench.Warning{{Code: "uneven-workers", Text: "uneven", Disturbed: true}}
	r.EmptyProxy = &bench.Part{Workers: 1, Threads: 1, Verdict: bench.Valid, Warnings: []bench.Warning{},
		Scenarios: []bench.ScenarioResult{scenario("empty-proxy", "empty proxy", run(24000.5, 640), run(24100.5, 641))}}
	r.ControlOne = new(withoutGateway(run(20310.77, 48)))
	r.Memory = bench.Memory{Idle: new(uint64(31 << 20)), Loaded: new(uint64(44 << 20)), After: new(uint64(40 << 20))}
	return r
}

// restartsResult has twelve starts, in two groups; one more was disturbed.
func restartsResult() bench.Result {
	r := validResult()
	r.Settings.Precision, r.Settings.MaxTimeS = 0.03, 3600
	r.Scenarios = nil
	for i := range 13 {
		qps := 15600 + 40*float64(i%4)
		if i%3 == 0 {
			qps *= 0.93
		}
		start := &bench.Result{
			Started: r.Started.Add(time.Duration(i) * 5 * time.Minute), Verdict: bench.Valid, Warnings: []bench.Warning{},
			Scenarios: []bench.ScenarioResult{
				scenario("single-upstream", "single upstream, no plugin", run(qps, 1020), run(qps-20, 1030)),
				scenario("two-plugins", "single upstream + two plugins (limit-count, prometheus)", run(qps-3300, 1310), run(qps-3310, 1300)),
			},
		}
		if i == 4 {
			start.Verdict = bench.Disturbed
		}
		r.AddStart(start)
	}
	return r
}

// wideResult has figures far beyond what a machine of today reaches.
func wideResult() bench.Result {
	r := validResult()
	for i := range r.Scenarios {
		s := r.Scenarios[i]
		r.Scenarios[i] = scenario(s.Name, s.Title, run(123456789.12, 9876543210), run(2e9, 1e300), run(1, 0.5))
	}
	r.Settings.Runs = 3
	r.Settings.Connections = 1000000
	r.Machine.Cores, r.Machine.UsableCores, r.Machine.QuotaCores, r.Machine.Allowed = 1024, 1.5, 1.5, "0-3,8"
	r.Machine.ThreadsPerCore = 8
	r.Machine.CPU.Kinds = []machine.Kind{
		{MIDR: machine.MIDR{Implementer: "0x41", Part: "0xd0b", Variant: "0x4", Revision: "0"}, Core: "Cortex-A76", CPUs: "0-511", Count: 512},
		{MIDR: machine.MIDR{Implementer: "0x41", Part: "0xd05", Variant: "0x2", Revision: "0"}, Core: "Cortex-A55", CPUs: "512-1023", Count: 512},
	}
	r.Machine.CPU.Frequency = machine.Frequency{MeasuredMHz: 2394.4, ClaimedMHz: 2400, ClaimedBy: "cpu MHz in proc/cpuinfo"}
	r.Machine.Emulated, r.Machine.EmulatedWhy = true, "no implementer in /proc/cpuinfo"
	r.Machine.MemoryBytes = 1 << 50
	return r
}

const hostile = "\x1b[31m=1+1|`<b>\r\n\u009b2J\u202e\x07\x00\t*_[x](y)\u0301 \xff"

// hostileResult has a text in every place that a file can have one.
func hostileResult() bench.Result {
	r := warningsResult()
	r.Label = hostile
	r.Gateway.OpenResty = &bench.OpenRestyInfo{Version: hostile, Path: hostile, LuaJIT: hostile, Modules: []string{hostile}}
	r.Tool = bench.Tool{Name: hostile, Version: "=cmd"}
	r.Machine.CPU = machine.CPU{MIDR: machine.MIDR{Implementer: hostile, Part: hostile, Variant: hostile, Revision: hostile}, Vendor: hostile,
		Core: "@" + hostile, Product: "=" + hostile}
	r.Machine.Cloud, r.Machine.Instance = "+"+hostile, "-"+hostile
	r.Machine.Arch, r.Machine.Kernel, r.Machine.OS = hostile, hostile, hostile
	r.Gateway.Name, r.Gateway.Version = hostile, hostile
	r.Gateway.Plugins = []string{hostile, hostile}
	r.Etcd.Version = hostile
	for i := range r.Scenarios {
		r.Scenarios[i].Name, r.Scenarios[i].Title = hostile, hostile
	}
	for i := range r.Warnings {
		r.Warnings[i] = bench.Warning{Code: hostile, Text: hostile, Hint: hostile}
	}
	return r
}

// scenario averages runs as the runner does.
func scenario(name, title string, runs ...bench.Run) bench.ScenarioResult {
	var qps, us float64
	for _, r := range runs {
		qps += r.QPS
		us += *r.Latency.MeanWrk
	}
	n := float64(len(runs))
	return bench.ScenarioResult{Name: name, Title: title, Runs: runs, QPS: new(qps / n), LatencyMs: new(us / n / 1000)}
}

// run is a run of 60 seconds with a mean latency in microseconds.
func run(qps, us float64) bench.Run {
	requests := qps * 60
	return bench.Run{
		Result: load.Result{
			Requests: uint64(requests), Seconds: 60, QPS: qps, Bytes: uint64(requests) * 192,
			Reconnects: new(uint64(requests / 1000)), Busy: new(0.121),
			Latency: load.Latency{Mean: new(us * 0.998), MeanWrk: new(us), Stdev: new(us / 6), Max: new(us * 12),
				P50: new(us * 0.97), P90: new(us * 1.2), P99: new(us * 1.6), P999: new(us * 3)},
			Histogram: "HISTFAAAAB542pNpmSzMwMDAxAABzFCaEUoz2X+AsQA9gQKT",
		},
		CPU: bench.CPU{Gateway: new(0.973), GatewayWait: new(0.011), Upstream: new(0.251),
			Load: new(0.238), Etcd: new(0.004), Others: new(0.021), Steal: new(0.0)},
		UpstreamAnswers: new(uint64(requests)),
		RSS: bench.RSS{Gateway: new(uint64(52_613_120)), Upstream: new(uint64(11_010_048)),
			Load: new(uint64(12_582_912)), Etcd: new(uint64(40_894_464))},
	}
}

// withoutGateway is a control run: nothing is known of a gateway.
func withoutGateway(r bench.Run) bench.Run {
	r.CPU.Gateway, r.CPU.GatewayWait, r.RSS.Gateway = nil, nil, nil
	r.CPU.Upstream, r.CPU.Load = new(0.83), new(0.79)
	return r
}

// manyPlugins is a list about as long as the one that APISIX loads by default.
var manyPlugins = []string{
	"real-ip", "client-control", "proxy-control", "request-id", "zipkin", "ext-plugin-pre-req", "fault-injection",
	"mocking", "serverless-pre-function", "cors", "ip-restriction", "ua-restriction", "referer-restriction",
	"csrf", "uri-blocker", "request-validation", "openid-connect", "authz-casbin", "authz-casdoor",
	"wolf-rbac", "ldap-auth", "hmac-auth", "basic-auth", "jwt-auth", "key-auth", "consumer-restriction",
	"forward-auth", "opa", "authz-keycloak", "body-transformer", "proxy-rewrite", "grpc-transcode", "grpc-web",
	"public-api", "prometheus", "datadog", "echo", "loggly", "http-logger", "splunk-hec-logging", "skywalking-logger",
	"google-cloud-logging", "sls-logger", "tcp-logger", "kafka-logger", "rocketmq-logger", "syslog", "udp-logger",
	"file-logger", "clickhouse-logger", "ext-plugin-post-req", "ext-plugin-post-resp", "limit-count", "limit-req",
	"limit-conn", "gzip", "server-info", "traffic-split", "redirect", "response-rewrite", "api-breaker",
	"node-status", "serverless-post-function",
}
