package machine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"armrepro/proxycheck/process"
)

// midr is the Main ID Register of an Arm core (Arm Architecture Reference Manual,
// MIDR_EL1) without bits 19 to 16, the architecture, which tell nothing about it.
type midr uint32

func midrOf(register uint64) midr { return midr(register &^ 0xf0000) }

// part is the core's type: an implementer's part.
type part struct {
	implementer uint8
	number      uint16
}

func (m midr) part() part { return part{uint8(m >> 24), uint16(m >> 4 & 0xfff)} }

// stepping is variant and revision in the way of Arm's manuals: r3p1.
func (m midr) stepping() string { return fmt.Sprintf("r%dp%d", m>>20&0xf, m&0xf) }

// fields are those of a CPU as /proc/cpuinfo prints them.
func (m midr) fields() MIDR {
	p, variant, revision := m.part(), uint32(m>>20&0xf), int(m&0xf)
	return MIDR{fmt.Sprintf("0x%02x", p.implementer), fmt.Sprintf("0x%03x", p.number), fmt.Sprintf("0x%x", variant), strconv.Itoa(revision)}
}

// String names the core in the way of Arm's manuals.
func (m midr) String() string {
	f := m.fields()
	return fmt.Sprintf("implementer %s part %s %s", f.Implementer, f.Part, m.stepping())
}

// maker is a company that MIDR_EL1 names, and its cores: "part name" in
// hexadecimal, with commas between them. The field's own tables are lscpu-arm.c
// of util-linux, arch/arm64/include/asm/cputype.h of Linux and, for Apple, midr.h
// of m1n1.
type maker struct{ name, cores string }

var makers = map[uint8]maker{
	0x00: {"", `051 QEMU max`},
	0x41: {"Arm", `
		810 ARM810, 920 ARM920, 922 ARM922, 926 ARM926, 940 ARM940, 946 ARM946, 966 ARM966, a20 ARM1020,
		a22 ARM1022, a26 ARM1026, b02 ARM11 MPCore, b36 ARM1136, b56 ARM1156, b76 ARM1176,
		c05 Cortex-A5, c07 Cortex-A7, c08 Cortex-A8, c09 Cortex-A9, c0d Cortex-A17, c0e Cortex-A17, c0f Cortex-A15,
		c14 Cortex-R4, c15 Cortex-R5, c17 Cortex-R7, c18 Cortex-R8, c20 Cortex-M0, c21 Cortex-M1, c23 Cortex-M3,
		c24 Cortex-M4, c27 Cortex-M7, c60 Cortex-M0+, d01 Cortex-A32, d02 Cortex-A34, d03 Cortex-A53, d04 Cortex-A35,
		d05 Cortex-A55, d06 Cortex-A65, d07 Cortex-A57, d08 Cortex-A72, d09 Cortex-A73, d0a Cortex-A75, d0b Cortex-A76,
		d0c Neoverse N1, d0d Cortex-A77, d0e Cortex-A76AE, d13 Cortex-R52, d14 Cortex-R82AE, d15 Cortex-R82,
		d16 Cortex-R52+, d20 Cortex-M23, d21 Cortex-M33, d22 Cortex-M55, d23 Cortex-M85, d24 Cortex-M52,
		d40 Neoverse V1, d41 Cortex-A78, d42 Cortex-A78AE, d43 Cortex-A65AE, d44 Cortex-X1, d46 Cortex-A510,
		d47 Cortex-A710, d48 Cortex-X2, d49 Neoverse N2, d4a Neoverse E1, d4b Cortex-A78C, d4c Cortex-X1C,
		d4d Cortex-A715, d4e Cortex-X3, d4f Neoverse V2, d80 Cortex-A520, d81 Cortex-A720, d82 Cortex-X4,
		d83 Neoverse V3AE, d84 Neoverse V3, d85 Cortex-X925, d87 Cortex-A725, d88 Cortex-A520AE, d89 Cortex-A720AE,
		d8a C1-Nano, d8b C1-Pro, d8c C1-Ultra, d8e Neoverse N3, d8f Cortex-A320, d90 C1-Premium`},
	0x42: {"Broadcom", `00f Brahma-B15, 100 Brahma-B53, 516 ThunderX2`},
	0x43: {"Cavium", `
		0a0 ThunderX, 0a1 ThunderX, 0a2 ThunderX, 0a3 ThunderX, 0af ThunderX2, 0b0 OcteonTX2, 0b1 OcteonTX2, 0b2 OcteonTX2,
		0b3 OcteonTX2, 0b4 OcteonTX2, 0b5 OcteonTX2, 0b6 OcteonTX2, 0b8 ThunderX3`},
	0x44: {"DEC", `a10 SA110, a11 SA1100`},
	0x46: {"Fujitsu", `001 A64FX, 003 Monaka`},
	0x48: {"HiSilicon", `
		d01 TaiShan v110, d02 HIP09, d03 Kunpeng 920, d06 HIP12, d22 Kunpeng 920, d40 Cortex-A76, d41 Cortex-A77`},
	0x49: {"Infineon", ``},
	0x4d: {"Freescale", ``},
	0x4e: {"NVIDIA", `000 Denver, 003 Denver 2, 004 Carmel, 010 Olympus`},
	0x50: {"APM", `000 X-Gene`},
	0x51: {"Qualcomm", `
		001 Oryon, 00f Scorpion, 02d Scorpion, 04d Krait, 06f Krait, 201 Kryo, 205 Kryo, 211 Kryo, 800 Falkor v1 or Kryo 2xx,
		801 Kryo 2xx Silver, 802 Kryo 3xx Gold, 803 Kryo 3xx Silver, 804 Kryo 4xx Gold, 805 Kryo 4xx Silver,
		c00 Falkor, c01 Saphira`},
	0x53: {"Samsung", `001 Exynos M1, 002 Exynos M3, 003 Exynos M4, 004 Exynos M5`},
	0x56: {"Marvell", `131 Feroceon, 581 PJ4, 584 PJ4B-MP`},
	// In parentheses is the chip that the core is in. Virtual machines on any of
	// them show part 0, which was Swift, a core of 32 bits.
	0x61: {"Apple", `
		001 Cyclone (A7), 002 Typhoon (A8), 003 Typhoon (A8X), 004 Twister (A9), 005 Twister (A9X), 006 Hurricane (A10),
		007 Hurricane (A10X), 008 Monsoon (A11), 009 Mistral (A11), 00b Vortex (A12), 00c Tempest (A12), 00f Tempest (S4),
		010 Vortex (A12X), 011 Tempest (A12X), 012 Lightning (A13), 013 Thunder (A13), 020 Icestorm (A14),
		021 Firestorm (A14), 022 Icestorm (M1), 023 Firestorm (M1), 024 Icestorm (M1 Pro), 025 Firestorm (M1 Pro),
		026 Thunder (S6), 028 Icestorm (M1 Max), 029 Firestorm (M1 Max), 030 Blizzard (A15), 031 Avalanche (A15),
		032 Blizzard (M2), 033 Avalanche (M2), 034 Blizzard (M2 Pro), 035 Avalanche (M2 Pro), 036 Sawtooth (A16),
		037 Everest (A16), 038 Blizzard (M2 Max), 039 Avalanche (M2 Max), 042 Sawtooth (M3), 043 Everest (M3),
		044 Sawtooth (M3 Pro), 045 Everest (M3 Pro), 048 Sawtooth (M3 Max), 049 Everest (M3 Max),
		052 E core (M4), 053 P core (M4), 054 E core (M4 Pro), 055 P core (M4 Pro), 058 E core (M4 Max), 059 P core (M4 Max)`},
	0x66: {"Faraday", `526 FA526, 626 FA626`},
	0x69: {"Intel", `
		200 i80200, 210 PXA250A, 212 PXA210A, 242 i80321, 243 i80321, 290 PXA250B, 292 PXA210B, 2c2 i80321, 2c3 i80321,
		2d0 PXA255, 2d2 PXA210C, 411 PXA27x, 41c IXP425, 41d IXP425, 41f IXP425, 682 PXA32x, 683 PXA935, 688 PXA30x,
		689 PXA31x, b11 SA1110, c12 IXP1200`},
	0x6d: {"Microsoft", `d49 Neoverse N2, d84 Neoverse V3`},
	0x70: {"Phytium", `303 FTC310, 660 FTC660, 661 FTC661, 662 FTC662, 663 FTC663, 664 FTC664, 862 FTC862`},
	0xc0: {"Ampere", `ac3 Ampere-1, ac4 Ampere-1a, ac5 Ampere-1mx`},
}

// coreNames are the names in makers.
var coreNames = sync.OnceValue(func() map[part]string {
	names := map[part]string{}
	for implementer, m := range makers {
		for row := range strings.SplitSeq(m.cores, ",") {
			digits, name, _ := strings.Cut(strings.TrimSpace(row), " ")
			if number, err := strconv.ParseUint(digits, 16, 12); err == nil {
				names[part{implementer, uint16(number)}] = name
			}
		}
	}
	return names
})

// coreName is the name of a core, empty if the table does not have it.
func coreName(m midr) string { return coreNames()[m.part()] }

// CoreName is the core's name, or its maker and ids where the name is unknown:
// Qualcomm 0x51/0x805, Intel family 6 model 167 stepping 8. It is empty if nothing
// is known of the core.
func (c CPU) CoreName() string {
	if c.Core == "" && c.Family != 0 {
		return c.x86IDs()
	}
	return c.nameOr(c.Core)
}

func (c CPU) x86IDs() string {
	return strings.TrimSpace(fmt.Sprintf("%s family %d model %d stepping %d", c.Vendor, c.Family, c.Model, c.Stepping))
}

// CoreName is as that of a CPU.
func (k Kind) CoreName() string { return k.nameOr(k.Core) }

// nameOr is the core's name if it has one, else its maker and ids.
func (m MIDR) nameOr(name string) string {
	if name != "" || m.Implementer == "" {
		return name
	}
	implementer, _ := strconv.ParseUint(m.Implementer, 0, 8)
	return strings.TrimSpace(makers[uint8(implementer)].name + " " + m.Implementer + "/" + m.Part)
}

// kind is one kind of core and the CPUs that are of it.
type kind struct {
	midr     midr
	cpus     []int
	capacity int
}

// beside adds what is doubtful about the cores to the reason for a conclusion.
func (d *detector) beside(why string) string {
	return strings.Join(append([]string{why}, d.doubts...), "; ")
}

// maxKinds is more than any machine has.
const maxKinds = 16

const register = "regs/identification/midr_el1"

// readKinds finds the MIDR of each online core: in sysfs, else in
// /proc/cpuinfo, else in the register of the core that this program runs on.
func (d *detector) readKinds() error {
	if d.wsl == wsl1 {
		return errors.New("under WSL1 proc/cpuinfo is made up")
	}
	listed := map[int]midr{}
	for _, p := range d.processors {
		if p.midr != nil {
			listed[p.id] = *p.midr
		}
	}
	cpus, err := d.readRegisters(listed)
	known := cpus
	if len(cpus) == 0 {
		known = listed
	}
	kinds := d.groupKinds(known)
	switch {
	case len(kinds) > maxKinds:
		return fmt.Errorf("the registers MIDR_EL1 make no sense: %d kinds of core", len(kinds))
	case len(cpus) > 0:
		d.coreSource = process.CPUPath(kinds[0].cpus[0], register)
	case len(kinds) > 0:
		d.coreSource = "proc/cpuinfo"
	case d.live != nil && d.live.MIDR != 0:
		kinds, d.coreSource = []kind{{midr: midrOf(d.live.MIDR)}}, "the register MIDR_EL1"
	default:
		return err
	}
	d.kinds = kinds
	return nil
}

// readRegisters reads the MIDR of each CPU in sysfs; it returns none if no CPU has
// one there. Of several, a CPU that has none is what /proc/cpuinfo lists it as. The
// error is the first one met.
func (d *detector) readRegisters(listed map[int]midr) (cpus map[int]midr, first error) {
	ids := d.online
	if len(ids) == 0 {
		ids = []int{0}
	}
	cpus = map[int]midr{}
	found := false
	var without, differing []int
	for _, id := range ids {
		m, err := readRegister(d.root, process.CPUPath(id, register))
		was, isListed := listed[id]
		switch {
		case err == nil:
			cpus[id], found = m, true
			if isListed && was != m {
				differing = append(differing, id)
			}
		case isListed:
			cpus[id] = was
		default:
			without = append(without, id)
		}
		first = cmp.Or(first, err)
	}
	// Old kernels do not have the file.
	if first != nil && (found || !errors.Is(first, fs.ErrNotExist)) {
		d.doubts = append(d.doubts, process.Reason(first))
	}
	if !found {
		return nil, first
	}
	if len(without) > 0 {
		d.doubts = append(d.doubts, "CPUs "+process.FormatCPUList(without)+" could not be identified")
	}
	if len(differing) > 0 {
		d.doubts = append(d.doubts, "proc/cpuinfo says otherwise of CPUs "+process.FormatCPUList(differing))
	}
	return cpus, first
}

// readRegister parses the register as sysfs has it, such as 0x00000000413fd0c1.
func readRegister(root fs.FS, file string) (midr, error) {
	line, err := process.ReadLine(root, file)
	if err != nil {
		return 0, err
	}
	digits, ok := strings.CutPrefix(line, "0x")
	register, err := strconv.ParseUint(digits, 16, 64)
	if err != nil || !ok {
		return 0, fmt.Errorf("%s: parse midr_el1 %q: want 0x and hexadecimal digits", file, line)
	}
	return midrOf(register), nil
}

// groupKinds sorts cores by kind. The strongest is the one with the largest
// capacity, where the kernel tells it, then the most numerous.
func (d *detector) groupKinds(cpus map[int]midr) []kind {
	var kinds []kind
	for _, id := range slices.Sorted(maps.Keys(cpus)) {
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.midr == cpus[id] })
		if i < 0 {
			i = len(kinds)
			kinds = append(kinds, kind{midr: cpus[id], capacity: capacity(d.root, id)})
		}
		kinds[i].cpus = append(kinds[i].cpus, id)
	}
	slices.SortStableFunc(kinds, func(a, b kind) int {
		return cmp.Or(cmp.Compare(b.capacity, a.capacity), cmp.Compare(len(b.cpus), len(a.cpus)))
	})
	return kinds
}

// findKinds lists the kinds if there are several.
func (d *detector) findKinds() {
	if len(d.kinds) < 2 {
		return
	}
	var names []string
	for _, k := range d.kinds {
		public := Kind{MIDR: k.midr.fields(), Core: coreName(k.midr), CPUs: process.FormatCPUList(k.cpus), Count: len(k.cpus)}
		d.m.CPU.Kinds = append(d.m.CPU.Kinds, public)
		names = append(names, public.CoreName()+" on CPUs "+public.CPUs)
	}
	source := d.coreSource
	if source != "proc/cpuinfo" {
		source = process.CPUDir + "/cpu*/" + register
	}
	order := "; the most numerous first, since nothing tells which is the strongest"
	if d.kinds[0].capacity > 0 {
		order = "; the strongest first, by cpu_capacity"
	}
	d.conclude("cpu.kinds", strings.Join(names, ", "), source+order, nil)
}
