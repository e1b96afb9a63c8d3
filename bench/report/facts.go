package report

import (
	"fmt"
	"strconv"
	"strings"

	"armrepro/bench"
	"armrepro/bench/machine"
)

// machineSection is what the figures were measured on.
func machineSection(m machine.Machine) section {
	return section{title: "Machine", facts: []fact{
		{"product", known(m.CPU.Product)},
		{"core", join(" ", known(m.CPU.Core), midr(m.CPU))},
		{"cloud", known(m.Cloud)},
		{"instance", known(m.Instance)},
		{"architecture", known(m.Arch)},
		{"kernel", known(m.Kernel)},
		{"page size", positive(m.PageSize, func(n int) string { return size(uint64(n)) })},
		{"cores", positive(m.Cores, strconv.Itoa)},
		{"memory", positive(m.MemoryBytes, size)},
	}}
}

// midr is the evidence for the core's name.
func midr(c machine.CPU) string {
	var parts []string
	for _, f := range []fact{
		{"implementer", c.Implementer}, {"part", c.Part}, {"variant", c.Variant}, {"revision", c.Revision},
	} {
		if f.value != "" {
			parts = append(parts, f.label+" "+f.value)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "(" + strings.Join(parts, ", ") + ")"
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
	return section{title: "Settings", facts: []fact{
		{"gateway", gatewayFact(r.Gateway)},
		{"workers", fmt.Sprintf("%d asked for, %s counted running", s.Workers, figure(r.Gateway.Workers, strconv.Itoa))},
		{"plugins loaded", plugins(r.Gateway.Plugins)},
		{"etcd", etcdFact(r.Etcd)},
		{"duration", fmt.Sprintf("%s a run, after %s of warm-up", seconds(s.DurationS), seconds(s.WarmupS))},
		{"runs", fmt.Sprintf("%d a scenario", s.Runs)},
		{"connections", fmt.Sprintf("%d, over %s", s.Connections, plural(s.Threads, "thread"))},
		{"timeout", seconds(s.TimeoutS)},
		{"upstreams", strconv.Itoa(s.Upstreams)},
		{"started", timestamp(r.Started)},
		{"measured by", join(" ", known(r.Tool.Name), r.Tool.Version)},
	}}
}

func gatewayFact(g bench.GatewayInfo) string {
	if isBuiltin(g) {
		return join(" ", gatewayName(g), "("+join(" ", known(g.Name), g.Version)+")")
	}
	return fmt.Sprintf("%s (%s)", join(" ", known(g.Name), known(g.Version)), known(g.Kind))
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
