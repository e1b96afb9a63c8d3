package machine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// findCPU names the processor.
func (d *detector) findCPU() {
	if d.m.Arch == "amd64" && d.info.first().midr == nil {
		d.findX86()
	} else {
		d.findArm()
	}
	d.findFeatures()
	caches, err := readCaches(d.root, d.firstCPU())
	d.m.CPU.Caches = caches
	d.report("cpu.caches", positive(len(caches)), cpuPath(d.firstCPU(), "cache"), err)
}

func (d *detector) findX86() {
	x, cpu := d.info.first().x86, &d.m.CPU
	if d.infoErr != nil || x.vendor == "" {
		why := "proc/cpuinfo has no vendor_id"
		if d.infoErr != nil {
			why = reason(d.infoErr)
		}
		d.because("cpu.product", "", "%s", why)
		d.because("cpu.core", "", "%s", why)
		return
	}
	cpu.Vendor = cmp.Or(x86Vendors[x.vendor], x.vendor)
	cpu.Family, cpu.Model, cpu.Stepping = x.family, x.number, x.stepping
	cpu.Product = productName(x.model)
	d.because("cpu.product", cpu.Product, "model name in proc/cpuinfo")
	cpu.Core = x86CoreName(cpu.Vendor, x)
	id := fmt.Sprintf("%s family %d model %d stepping %d", cpu.Vendor, x.family, x.number, x.stepping)
	if cpu.Core == "" {
		id += " is not in the table of cores"
	}
	d.because("cpu.core", cpu.Core, "%s", id)
}

func (d *detector) findArm() {
	if d.cores.err != nil {
		d.because("cpu.core", "", "%s", reason(d.cores.err))
		d.because("cpu.product", "", "the core is unknown")
		return
	}
	m, source, cpu := d.cores.kinds[0].midr, d.cores.source, &d.m.CPU
	cpu.Kinds = describeKinds(d.cores.kinds)
	cpu.Implementer, cpu.Part = m.implementerHex(), m.partHex()
	cpu.Variant, cpu.Revision = m.variantHex(), strconv.Itoa(int(m.revision))
	cpu.Vendor, cpu.Core = implementers[m.implementer], coreName(m)
	cpu.BogoMIPS = d.bogoMIPS()
	if cpu.Core == "" {
		d.because("cpu.core", "", "%s, from %s, is not in the table of cores", m, source)
	} else {
		d.because("cpu.core", cpu.Core, "%s, from %s", m, source)
	}
	product, why := d.findProduct(m)
	cpu.Product = product
	d.because("cpu.product", product, "%s", why)
}

// bogoMIPS is that of the first core; 0 if unknown, and on arm64 also if
// /proc/cpuinfo is another CPU's.
func (d *detector) bogoMIPS() float64 {
	if p := d.info.first(); p.midr != nil {
		return p.bogoMIPS
	}
	return 0
}

// findProduct names what a chip with this core is sold as. What the firmware
// says counts most; then what fits by core, timer and cloud.
func (d *detector) findProduct(m midr) (name, why string) {
	for _, source := range []struct{ file, text string }{
		{"SMBIOS processor version", d.smbios.version},
		{"DMI product_family", d.dmi["product_family"]},
	} {
		if name := markedProduct(m, source.text); name != "" {
			return name, fmt.Sprintf("%s is %q", source.file, source.text)
		}
	}
	c := chip{midr: m, bogoMIPS: d.bogoMIPS(), cloud: d.m.Cloud, cloudKnown: d.dmiErr == nil}
	facts := m.stepping()
	if c.bogoMIPS != 0 {
		facts += fmt.Sprintf(" with BogoMIPS %.2f", c.bogoMIPS)
	}
	if c.cloud != "" {
		facts += " on " + c.cloud
	}
	names := fittingProducts(c)
	if len(names) > 0 {
		return alternatives(names), facts + fits(len(names), d.smbiosErr)
	}
	// A chip that is newer than the table, by the firmware's own name.
	if name := firmwareName(d.smbios); name != "" {
		return name, fmt.Sprintf("SMBIOS processor version is %q", d.smbios.version)
	}
	return "", facts + " fits no product in the table"
}

// fits says how far the evidence goes.
func fits(n int, smbiosErr error) string {
	if n == 1 {
		return " fits this one only"
	}
	why := " fits them alike"
	if smbiosErr != nil {
		why += "; " + reason(smbiosErr)
	}
	return why
}

// firmwareName is the processor version of SMBIOS if it names a chip. Firmware
// that has nothing to say fills the field, and emulators write their own name.
func firmwareName(p smbiosProcessor) string {
	name := productName(p.version)
	lower := strings.ToLower(name)
	for _, filler := range []string{"not specified", "to be filled", "unknown", "virt-", "pc-", "none", "n/a", "default", "cpu version"} {
		if strings.HasPrefix(lower, filler) {
			return ""
		}
	}
	if p.manufacturer == "QEMU" || !strings.ContainsFunc(name, func(r rune) bool { return r >= 'A' && r <= 'z' }) {
		return ""
	}
	return name
}

// kind is one kind of core and the CPUs that are of it.
type kind struct {
	midr     midr
	cpus     []int
	capacity int
}

// coreKinds are the kinds of core of a machine, the strongest first, and where
// they were read.
type coreKinds struct {
	kinds  []kind
	source string
	err    error
}

// readKinds finds the MIDR of each online core: in sysfs, else in
// /proc/cpuinfo, else in the register of the core that this program runs on.
func (d *detector) readKinds() coreKinds {
	const register = "regs/identification/midr_el1"
	ids := d.online
	if len(ids) == 0 {
		ids = []int{0}
	}
	cpus := map[int]midr{}
	var first error
	for _, id := range ids {
		line, err := readLine(d.root, cpuPath(id, register))
		if err == nil {
			cpus[id], err = parseMIDR(line)
		}
		if err != nil {
			delete(cpus, id)
			first = cmp.Or(first, err)
		}
	}
	if len(cpus) > 0 {
		return coreKinds{d.groupKinds(cpus), cpuPath(ids[0], register), nil}
	}
	for _, p := range d.info.processors {
		if p.midr != nil {
			cpus[p.id] = *p.midr
		}
	}
	if len(cpus) > 0 {
		return coreKinds{d.groupKinds(cpus), "proc/cpuinfo", nil}
	}
	if d.live != nil && d.live.MIDR != 0 {
		return coreKinds{[]kind{{midr: decodeMIDR(d.live.MIDR)}}, "the register MIDR_EL1", nil}
	}
	return coreKinds{err: first}
}

// groupKinds sorts cores by kind. The strongest is the one with the largest
// capacity, where the kernel tells it, then the most numerous.
func (d *detector) groupKinds(cpus map[int]midr) []kind {
	var kinds []kind
	for _, id := range slices.Sorted(maps.Keys(cpus)) {
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.midr == cpus[id] })
		if i < 0 {
			i = len(kinds)
			capacity, err := readUint(d.root, cpuPath(id, "cpu_capacity"))
			if err != nil || capacity > 1024 {
				capacity = 0
			}
			kinds = append(kinds, kind{midr: cpus[id], capacity: int(capacity)})
		}
		kinds[i].cpus = append(kinds[i].cpus, id)
	}
	slices.SortStableFunc(kinds, func(a, b kind) int {
		return cmp.Or(cmp.Compare(b.capacity, a.capacity), cmp.Compare(len(b.cpus), len(a.cpus)))
	})
	return kinds
}

// describeKinds lists the kinds if there are several.
func describeKinds(kinds []kind) []Kind {
	if len(kinds) < 2 {
		return nil
	}
	var list []Kind
	for _, k := range kinds {
		list = append(list, Kind{
			Implementer: k.midr.implementerHex(),
			Part:        k.midr.partHex(),
			Variant:     k.midr.variantHex(),
			Revision:    strconv.Itoa(int(k.midr.revision)),
			Core:        coreName(k.midr),
			CPUs:        FormatCPUList(k.cpus),
			Count:       len(k.cpus),
		})
	}
	return list
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
			d.because(field, "", "%s", reason(d.auxvErr))
			return
		}
		all, source = d.auxv.features(), "AT_HWCAP in proc/self/auxv"
	}
	if len(all) == 0 {
		d.because(field, "", "%s", reason(cmp.Or(d.infoErr, errors.New("proc/cpuinfo lists no features"))))
		return
	}
	d.m.CPU.Features = selectFeatures(d.m.Arch, all)
	d.because(field, cmp.Or(strings.Join(d.m.CPU.Features, " "), none), "%s", source)
}
