package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"armrepro/bench"
	"armrepro/bench/fitness"
	"armrepro/bench/machine"
)

// machineSection is what the figures were measured on, as far as it moves
// them.
func machineSection(r bench.Result) section {
	facts := machineFacts(r.Machine)
	if codes := unchecked(r.Unchecked); codes != "" {
		facts = append(facts, fact{"could not check", codes})
	}
	if r.Label != "" {
		facts = append([]fact{{"label", r.Label}}, facts...)
	}
	return section{title: "Machine", facts: facts}
}

func machineFacts(m machine.Machine) []fact {
	facts := []fact{{"product", known(m.CPU.Product)}, {"core", coreFact(m.CPU)}}
	optional := func(label, value string) {
		if value != "" {
			facts = append(facts, fact{label, value})
		}
	}
	optional("MIDR", midr(m.CPU))
	optional("frequency", frequency(m.CPU.Frequency))
	if m.Emulated {
		optional("emulated", join(", ", "yes", m.EmulatedWhy))
	}
	facts = append(facts, fact{"cloud", known(m.Cloud)}, fact{"instance", known(m.Instance)})
	optional("hypervisor", m.Hypervisor)
	optional("container", m.Container)
	facts = append(facts,
		fact{"architecture", known(m.Arch)},
		fact{"system", known(m.OS)},
		fact{"kernel", known(m.Kernel)},
		fact{"page size", positive(m.PageSize, pageSize)},
		fact{"cores", coresFact(m)},
		fact{"memory", positive(m.MemoryBytes, size)},
	)
	optional("mitigated", m.Mitigated())
	return facts
}

// unchecked lists the codes of the checks that could not be made.
func unchecked(list []fitness.Unchecked) string {
	var codes []string
	for _, u := range list {
		codes = append(codes, u.Code)
	}
	return strings.Join(codes, ", ")
}

// coreFact names the core, or each kind of several.
func coreFact(c machine.CPU) string {
	if len(c.Kinds) == 0 {
		return known(c.CoreName())
	}
	var kinds []string
	for _, k := range c.Kinds {
		kinds = append(kinds, fmt.Sprintf("%d × %s", k.Count, known(k.CoreName())))
	}
	return strings.Join(kinds, ", ")
}

// coresFact counts the cores, and says which of them could be used where that
// is not all.
func coresFact(m machine.Machine) string {
	var limits []string
	if m.UsableCores > 0 && m.UsableCores != float64(m.Cores) {
		limits = append(limits, "usable "+shortest(m.UsableCores))
		if m.Allowed != "" {
			limits = append(limits, "allowed "+m.Allowed)
		}
		if m.QuotaCores > 0 {
			limits = append(limits, "quota "+shortest(m.QuotaCores))
		}
	}
	if m.ThreadsPerCore > 1 {
		limits = append(limits, fmt.Sprintf("%d threads a core", m.ThreadsPerCore))
	}
	return join(", ", append([]string{positive(m.Cores, strconv.Itoa)}, limits...)...)
}

func frequency(f machine.Frequency) string {
	var measured, claimed string
	if f.MeasuredMHz > 0 {
		measured = fixed(f.MeasuredMHz, 0) + " MHz measured"
	}
	if f.ClaimedMHz > 0 {
		claimed = fixed(f.ClaimedMHz, 0) + " MHz claimed"
		if f.ClaimedBy != "" {
			claimed += " (" + f.ClaimedBy + ")"
		}
	}
	return join(", ", measured, claimed)
}

func pageSize(n int) string {
	if n%1024 != 0 {
		return strconv.Itoa(n) + " B"
	}
	return strconv.Itoa(n/1024) + " KiB"
}

// midr is the evidence for the core's name; only Arm's cores have it.
func midr(c machine.CPU) string {
	var parts []string
	for _, f := range []fact{
		{"implementer", c.Implementer}, {"part", c.Part}, {"variant", c.Variant}, {"revision", c.Revision},
	} {
		if f.value != "" {
			parts = append(parts, f.label+" "+f.value)
		}
	}
	return strings.Join(parts, ", ")
}

// positive prints n, or the mark for a missing figure if n is zero: a machine
// without cores or memory is one that could not be read.
func positive[T int | uint64](n T, format func(T) string) string {
	if n <= 0 {
		return missing
	}
	return format(n)
}

// settingsSection is every choice that moves the numbers.
func settingsSection(r bench.Result) section {
	s := r.Settings
	facts := []fact{
		{"gateway", gatewayFact(r.Gateway)},
		{"workers", fmt.Sprintf("%d required, %s running", s.Workers, figure(r.Gateway.Workers, strconv.Itoa))},
		{"plugins loaded", plugins(r.Gateway.Plugins)},
		{"etcd", etcdFact(r.Etcd)},
		{"duration", fmt.Sprintf("%s a run, after %s of warm-up", seconds(s.DurationS), seconds(s.WarmupS))},
		{"runs", fmt.Sprintf("%d a scenario", s.Runs)},
		{"connections", fmt.Sprintf("%d, over %s", s.Connections, plural(s.Threads, "thread"))},
		{"load", loadFact(s)},
		{"timeout", seconds(s.TimeoutS)},
		{"pinning", pinning(s.Pins)},
		{"upstreams", strconv.Itoa(s.Upstreams)},
		{"started", timestamp(r.Started)},
		{"measured by", join(" ", known(r.Tool.Name), r.Tool.Version)},
	}
	if o := r.Gateway.OpenResty; o != nil {
		facts = slices.Insert(facts, 1, fact{"OpenResty", openResty(o)})
	}
	return section{title: "Settings", facts: facts}
}

func gatewayFact(g bench.GatewayInfo) string {
	if isBuiltin(g) {
		return join(" ", gatewayName(g), "("+join(" ", known(g.Name), g.Version)+")")
	}
	return fmt.Sprintf("%s (%s)", join(" ", known(g.Name), known(g.Version)), known(g.Kind))
}

func openResty(o *bench.OpenRestyInfo) string {
	text := join(", ", known(o.Version), o.Path)
	if o.LuaJIT != "" {
		text += ", LuaJIT " + o.LuaJIT
	}
	return text
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
