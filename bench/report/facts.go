package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/jedib0t/go-pretty/v6/text"

	"armrepro/bench"
	"armrepro/bench/fitness"
	"armrepro/bench/machine"
)

// machineSection is what the figures were measured on, as far as it moves
// them.
func machineSection(r bench.Result) section {
	unchecked := each(r.Unchecked, func(u fitness.Unchecked) string { return u.Code })
	facts := slices.Concat([]fact{{"label", r.Label}}, machineFacts(r.Machine),
		[]fact{{"could not check", strings.Join(unchecked, ", ")}})
	return section{title: "Machine", facts: present(facts)}
}

// present drops the facts that need no saying.
func present(facts []fact) []fact {
	return slices.DeleteFunc(facts, func(f fact) bool { return f.value == "" })
}

func machineFacts(m machine.Machine) []fact {
	var emulated string
	if m.Emulated {
		emulated = "yes" + after(", ", m.EmulatedWhy)
	}
	return present([]fact{
		{"product", known(m.CPU.Product)},
		{"core", coreFact(m.CPU)},
		{"MIDR", midr(m.CPU)},
		{"frequency", frequency(m.CPU.Frequency)},
		{"emulated", emulated},
		{"cloud", known(m.Cloud)},
		{"instance", known(m.Instance)},
		{"hypervisor", m.Hypervisor},
		{"container", m.Container},
		{"architecture", known(m.Arch)},
		{"system", known(m.OS)},
		{"kernel", known(m.Kernel)},
		{"page size", positive(m.PageSize, pageSize)},
		{"cores", coresFact(m)},
		{"memory", positive(m.MemoryBytes, size)},
		{"mitigated", m.Mitigated()},
	})
}

// coreFact names the core, or each kind of several.
func coreFact(c machine.CPU) string {
	if len(c.Kinds) == 0 {
		return known(c.CoreName())
	}
	return strings.Join(each(c.Kinds, func(k machine.Kind) string {
		return fmt.Sprintf("%d × %s", k.Count, known(k.CoreName()))
	}), ", ")
}

// coresFact counts the cores, and says which of them could be used where that
// is not all.
func coresFact(m machine.Machine) string {
	facts := []string{positive(m.Cores, strconv.Itoa)}
	if m.UsableCores > 0 && m.UsableCores != float64(m.Cores) {
		facts = append(facts, "usable "+shortest(m.UsableCores), after("allowed ", m.Allowed))
		if m.QuotaCores > 0 {
			facts = append(facts, "quota "+shortest(m.QuotaCores))
		}
	}
	if m.ThreadsPerCore > 1 {
		facts = append(facts, fmt.Sprintf("%d threads a core", m.ThreadsPerCore))
	}
	return join(", ", facts...)
}

func frequency(f machine.Frequency) string {
	megahertz := func(v float64, what string) string {
		if v <= 0 {
			return ""
		}
		return fixed(v, 0) + " MHz " + what
	}
	claimed := "claimed"
	if f.ClaimedBy != "" {
		claimed += " (" + f.ClaimedBy + ")"
	}
	return join(", ", megahertz(f.MeasuredMHz, "measured"), megahertz(f.ClaimedMHz, claimed))
}

func pageSize(n int) string {
	if n%1024 != 0 {
		return strconv.Itoa(n) + " B"
	}
	return strconv.Itoa(n/1024) + " KiB"
}

// midr is the evidence for the core's name; only Arm's cores have it.
func midr(c machine.CPU) string {
	return join(", ", after("implementer ", c.Implementer), after("part ", c.Part),
		after("variant ", c.Variant), after("revision ", c.Revision))
}

// settingsSection is every choice that moves the numbers.
func settingsSection(r bench.Result) section {
	s := r.Settings
	return section{title: "Settings", facts: present([]fact{
		{"gateway", gatewayFact(r.Gateway)},
		{"OpenResty", openResty(r.Gateway.OpenResty)},
		{"workers", fmt.Sprintf("%d required, %s running", s.Workers, figure(r.Gateway.Workers, strconv.Itoa))},
		{"plugins loaded", plugins(r.Gateway.Plugins)},
		{"etcd", etcdFact(r.Etcd)},
		{"duration", fmt.Sprintf("%s a run, after %s of warm-up", seconds(s.DurationS), seconds(s.WarmupS))},
		{"runs", fmt.Sprintf("%d a scenario", s.Runs)},
		{"connections", fmt.Sprintf("%d, over %s", s.Connections, plural(s.Threads, "thread"))},
		{"load", loadFact(s)},
		{"load generator", programFact(r.Tools.Load)},
		{"cross-check", programFact(r.Tools.CrossCheck)},
		{"timeout", seconds(s.TimeoutS)},
		{"pinning", pinning(s.Pins)},
		{"upstreams", strconv.Itoa(s.Upstreams)},
		{"upstream program", programFact(r.Tools.Upstream)},
		{"upstream answers", uncounted(r.Scenarios)},
		{"started", timestamp(r.Started)},
		{"measured by", join(" ", known(r.Tool.Name), r.Tool.Version)},
	})}
}

// uncounted says that answers may have come from elsewhere than the upstream,
// unseen; empty where the upstream counted its own in every run.
func uncounted(scenarios []bench.ScenarioResult) string {
	for _, s := range scenarios {
		if slices.ContainsFunc(s.Runs, func(run bench.Run) bool { return run.UpstreamAnswers == nil }) {
			return missing + " (could not be counted)"
		}
	}
	return ""
}

func gatewayFact(g bench.GatewayInfo) string {
	if isBuiltin(g) {
		return join(" ", gatewayName(g), "("+join(" ", known(g.Name), g.Version)+")")
	}
	return fmt.Sprintf("%s (%s)", join(" ", known(g.Name), known(g.Version)), known(g.Kind))
}

// openResty names what APISIX runs on; empty where that was not seen.
func openResty(o *bench.OpenRestyInfo) string {
	if o == nil {
		return ""
	}
	return join(", ", known(o.Version), o.Path, "LuaJIT "+known(o.LuaJIT))
}

func etcdFact(e bench.EtcdInfo) string {
	if e.Embedded {
		return known(e.Version) + ", embedded in armrepro"
	}
	return known(e.Version) + ", not embedded"
}

// plugins counts and lists the loaded plugins. A nil list is an unknown one.
func plugins(list []string) string {
	switch {
	case list == nil:
		return missing + " (the list is unknown)"
	case len(list) == 0:
		return "none"
	}
	return strconv.Itoa(len(list)) + ": " + strings.Join(list, ", ")
}

// pinning says which CPUs each part was kept on.
func pinning(p *bench.Pins) string {
	if p == nil {
		return "none: the kernel placed the processes"
	}
	part := func(name, cpus string) string {
		if cpus == "" {
			return name + " not pinned"
		}
		return name + " on CPU " + cpus
	}
	return part("gateway", p.Gateway) + ", " + part("upstream", p.Upstream) + ", " + part("load", p.Load)
}

// loadFact says what decides when a request is sent.
func loadFact(s bench.Settings) string {
	switch {
	case s.RateShare > 0:
		return "open loop: fixed rate, " + percent(s.RateShare) + " of the scenario's maximum"
	case s.Rate > 0:
		return "open loop: fixed rate, " + rate(s.Rate) + " requests/sec"
	}
	return "closed loop: each connection waits for its response before sending again"
}

// WriteMachine prints what the machine is, one aligned line a fact, and then the
// evidence. A width of 0, no terminal, is no limit.
func WriteMachine(w io.Writer, m machine.Machine, evidence []machine.Evidence, width int) error {
	if width == 0 {
		width = math.MaxInt
	}
	var out strings.Builder
	p := &textPrinter{out: &out, width: max(width, minWidth)}
	facts := append(machineFacts(m),
		fact{"caches", caches(m.CPU.Caches)}, fact{"features", features(m)}, fact{"NUMA nodes", positive(m.NUMANodes, strconv.Itoa)})
	for i := range facts {
		facts[i].value = orUnknown(facts[i].value)
	}
	if m.Emulated {
		facts = append(facts, fact{"", "a result measured here is invalid"})
	}
	p.facts(facts, 0)
	if len(evidence) > 0 {
		out.WriteByte('\n')
		p.evidence(evidence)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// evidence prints what each conclusion rests on: in three columns or, where the
// terminal is too narrow for them, below the conclusion.
func (p *textPrinter) evidence(list []machine.Evidence) {
	const gap = "  "
	var table strings.Builder
	t := tabwriter.NewWriter(&table, 0, 0, len(gap), ' ', 0)
	for _, e := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\n", e.Field, clean(orUnknown(known(e.Value))), clean(e.Why))
	}
	t.Flush() // a Builder takes everything
	if text.LongestLineLen(table.String()) <= p.width {
		p.out.WriteString(table.String())
		return
	}
	for _, e := range list {
		p.lines(e.Field+": "+orUnknown(known(e.Value)), len(gap), "")
		p.out.WriteString(gap + gap)
		p.lines(e.Why, 2*len(gap), "")
	}
}

// orUnknown spells out the mark for what is missing.
func orUnknown(value string) string {
	if value == missing {
		return "unknown"
	}
	return value
}

func caches(list []machine.Cache) string {
	return known(strings.Join(each(list, func(c machine.Cache) string {
		name := fmt.Sprintf("L%d", c.Level)
		if c.Type == "data" || c.Type == "instruction" {
			name += c.Type[:1]
		}
		name += " " + size(c.SizeBytes)
		if c.SharedBy > 1 {
			name += fmt.Sprintf(" (shared by %d)", c.SharedBy)
		}
		return name
	}), ", "))
}

// features lists those that move a figure, and which of them are not there.
func features(m machine.Machine) string {
	if m.CPU.Features == nil {
		return missing
	}
	absent := slices.DeleteFunc(slices.Clone(machine.FeatureNames(m.Arch)), func(name string) bool {
		return slices.Contains(m.CPU.Features, name)
	})
	return join("; ", strings.Join(m.CPU.Features, " "), after("without ", strings.Join(absent, " ")))
}
