package machine

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"armrepro/proxycheck/process"
)

// findCPU names the processor.
func (d *detector) findCPU() {
	cpu := &d.m.CPU
	if d.m.Arch == "amd64" && d.first.midr == nil {
		d.findX86()
	} else {
		d.findArm()
	}
	source, err := "", error(nil)
	cpu.Features, source, err = d.features()
	d.conclude("cpu.features", cmp.Or(strings.Join(cpu.Features, " "), none), source, err)
	if err = d.hosts; err == nil {
		cpu.Caches, err = readCaches(d.root, d.firstCPU())
	}
	d.conclude("cpu.caches", strconv.Itoa(len(cpu.Caches)), process.CPUPath(d.firstCPU(), "cache"), err)
}

func (d *detector) findX86() {
	p, cpu := d.first, &d.m.CPU
	if p.vendor == "" {
		err := cmp.Or(d.infoErr, errors.New("proc/cpuinfo has no vendor_id"))
		d.conclude("cpu.product", "", "", err)
		d.conclude("cpu.core", "", "", err)
		return
	}
	if cpu.Vendor = x86Vendors[p.vendor]; cpu.Vendor == "" && checkName(p.vendor) == nil {
		cpu.Vendor = p.vendor
	}
	cpu.Family, cpu.Model, cpu.Stepping = p.family, p.number, p.stepping
	why := "model name in proc/cpuinfo"
	if err := checkName(p.model); err != nil {
		why += " is " + err.Error()
	} else if cpu.Product = productName(p.model); cpu.Product == "" {
		why = "proc/cpuinfo has no model name"
	}
	d.conclude("cpu.product", cpu.Product, why, nil)
	why = cpu.x86IDs()
	if cpu.Core = x86CoreName(cpu.Vendor, p); cpu.Core == "" {
		why += " is not in the table of cores"
	}
	d.conclude("cpu.core", cpu.Core, why, nil)
}

func (d *detector) findArm() {
	cpu := &d.m.CPU
	if d.cores.err != nil {
		d.conclude("cpu.core", "", "", d.cores.err)
		d.conclude("cpu.product", "", "the core is unknown", nil)
		return
	}
	m := d.cores.first()
	cpu.MIDR, cpu.Vendor, cpu.Core, cpu.BogoMIPS = m.fields(), makers[m.part().implementer].name, coreName(m), d.bogoMIPS()
	why := m.String() + ", from " + d.cores.source
	if cpu.Core == "" {
		why += ", is not in the table of cores"
	}
	d.conclude("cpu.core", cpu.Core, d.cores.beside(why), nil)
	d.findKinds()
	cpu.Product, why = d.product(m)
	if strings.HasPrefix(cpu.Product, appleName) {
		cpu.Vendor = "Apple" // some of its virtual machines show another implementer
	}
	d.conclude("cpu.product", cpu.Product, d.cores.beside(why), nil)
}

// bogoMIPS is that of the first core; 0 if unknown, and on arm64 also if
// /proc/cpuinfo is another CPU's.
func (d *detector) bogoMIPS() float64 {
	if d.first.midr == nil {
		return 0
	}
	return d.first.bogoMIPS
}

// features lists those that matter, from /proc/cpuinfo or from what the kernel told
// this process. Cores of several kinds show what all of them have, as the kernel
// does.
func (d *detector) features() (found []string, source string, err error) {
	all, source := slices.Clone(d.first.features), "proc/cpuinfo"
	for _, p := range d.processors {
		all = slices.DeleteFunc(all, func(f string) bool { return !slices.Contains(p.features, f) })
	}
	if d.m.Arch == "arm64" && (d.first.midr == nil || len(all) == 0) {
		if d.auxvErr != nil {
			return nil, "", d.auxvErr
		}
		all, source = d.auxv.features(), "AT_HWCAP in proc/self/auxv"
	}
	if len(all) == 0 {
		return nil, "", cmp.Or(d.infoErr, errors.New("proc/cpuinfo lists no features"))
	}
	return selectFeatures(d.m.Arch, all), source, nil
}
