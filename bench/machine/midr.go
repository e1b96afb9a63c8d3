package machine

import (
	"fmt"
	"strconv"
	"strings"
)

// midr is the Main ID Register of an Arm core (Arm Architecture Reference Manual,
// MIDR_EL1) without bits 19 to 16, the architecture, which tell nothing about it.
type midr uint32

func midrOf(register uint64) midr { return midr(register &^ 0xf0000) }

// parseMIDR parses the register as sysfs has it, such as 0x00000000413fd0c1.
func parseMIDR(s string) (midr, error) {
	digits, ok := strings.CutPrefix(s, "0x")
	register, err := strconv.ParseUint(digits, 16, 64)
	if err != nil || !ok {
		return 0, fmt.Errorf("parse midr_el1 %q: want 0x and hexadecimal digits", s)
	}
	return midrOf(register), nil
}

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
