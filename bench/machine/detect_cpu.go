package machine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"armrepro/proxycheck/process"
)

// findCPU names the processor.
func (d *detector) findCPU() {
	if d.m.Arch == "amd64" && d.info.first().midr == nil {
		d.findX86()
	} else {
		d.findArm()
	}
	d.findFeatures()
	var caches []Cache
	err := errHosts
	if !d.hostsFacts() {
		caches, err = readCaches(d.root, d.firstCPU())
	}
	d.m.CPU.Caches = caches
	d.report("cpu.caches", positive(len(caches)), cpuPath(d.firstCPU(), "cache"), err)
}

func (d *detector) findX86() {
	x, cpu := d.info.first().x86, &d.m.CPU
	if d.infoErr != nil || x.vendor == "" {
		why := "proc/cpuinfo has no vendor_id"
		if d.infoErr != nil {
			why = process.Reason(d.infoErr)
		}
		d.because("cpu.product", "", "%s", why)
		d.because("cpu.core", "", "%s", why)
		return
	}
	if cpu.Vendor = x86Vendors[x.vendor]; cpu.Vendor == "" && checkName(x.vendor) == nil {
		cpu.Vendor = x.vendor
	}
	cpu.Family, cpu.Model, cpu.Stepping = x.family, x.number, x.stepping
	name, why := productName(x.model), "model name in proc/cpuinfo"
	if err := checkName(x.model); err != nil {
		name, why = "", why+" is "+err.Error()
	} else if name == "" {
		why = "proc/cpuinfo has no model name"
	}
	cpu.Product = name
	d.because("cpu.product", name, "%s", why)
	cpu.Core = x86CoreName(cpu.Vendor, x)
	id := cpu.x86IDs()
	if cpu.Core == "" {
		id += " is not in the table of cores"
	}
	d.because("cpu.core", cpu.Core, "%s", id)
}

func (d *detector) findArm() {
	if d.cores.err != nil {
		d.because("cpu.core", "", "%s", process.Reason(d.cores.err))
		d.because("cpu.product", "", "the core is unknown")
		return
	}
	m, source, cpu := d.cores.kinds[0].midr, d.cores.source, &d.m.CPU
	cpu.Kinds = describeKinds(d.cores.kinds)
	cpu.Implementer, cpu.Part = m.implementerHex(), m.partHex()
	cpu.Variant, cpu.Revision = m.variantHex(), strconv.Itoa(int(m.revision))
	cpu.Vendor, cpu.Core = makers[m.implementer].name, coreName(m)
	cpu.BogoMIPS = d.bogoMIPS()
	why := fmt.Sprintf("%s, from %s", m, source)
	if cpu.Core == "" {
		why += ", is not in the table of cores"
	}
	d.because("cpu.core", cpu.Core, "%s", d.cores.beside(why))
	d.explainKinds()
	product, why := d.findProduct(m)
	cpu.Product = product
	if strings.HasPrefix(product, appleName) {
		cpu.Vendor = "Apple" // some of its virtual machines show another implementer
	}
	d.because("cpu.product", product, "%s", d.cores.beside(why))
}

// bogoMIPS is that of the first core; 0 if unknown, and on arm64 also if
// /proc/cpuinfo is another CPU's.
func (d *detector) bogoMIPS() float64 {
	if p := d.info.first(); p.midr != nil {
		return p.bogoMIPS
	}
	return 0
}

// findFeatures lists the features that matter, from /proc/cpuinfo or from what
// the kernel told this process. Cores of several kinds show what all of them
// have, as the kernel does.
func (d *detector) findFeatures() {
	const field = "cpu.features"
	source := "proc/cpuinfo"
	all := d.info.first().features
	for _, p := range d.info.processors {
		all = slices.DeleteFunc(slices.Clone(all), func(f string) bool { return !slices.Contains(p.features, f) })
	}
	if d.m.Arch == "arm64" && (d.info.first().midr == nil || len(all) == 0) {
		if d.auxvErr != nil {
			d.because(field, "", "%s", process.Reason(d.auxvErr))
			return
		}
		all, source = d.auxv.features(), "AT_HWCAP in proc/self/auxv"
	}
	if len(all) == 0 {
		d.because(field, "", "%s", process.Reason(cmp.Or(d.infoErr, errors.New("proc/cpuinfo lists no features"))))
		return
	}
	d.m.CPU.Features = selectFeatures(d.m.Arch, all)
	d.because(field, cmp.Or(strings.Join(d.m.CPU.Features, " "), none), "%s", source)
}
