package machine

import (
	"fmt"
	"strconv"
	"strings"
)

// midr is the Main ID Register of an Arm core (Arm Architecture Reference
// Manual, MIDR_EL1).
type midr struct {
	implementer uint8
	variant     uint8
	part        uint16
	revision    uint8
}

// decodeMIDR takes the register apart. Bits 19 to 16, the architecture, tell
// nothing about the core.
func decodeMIDR(reg uint64) midr {
	return midr{
		implementer: uint8(reg >> 24),
		variant:     uint8(reg >> 20 & 0xf),
		part:        uint16(reg >> 4 & 0xfff),
		revision:    uint8(reg & 0xf),
	}
}

// parseMIDR parses the register as sysfs has it, such as 0x00000000413fd0c1.
func parseMIDR(s string) (midr, error) {
	digits, ok := strings.CutPrefix(s, "0x")
	if !ok {
		return midr{}, fmt.Errorf("parse midr_el1 %q: want 0x and hexadecimal digits", s)
	}
	reg, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return midr{}, fmt.Errorf("parse midr_el1: %w", err)
	}
	return decodeMIDR(reg), nil
}

// String names the core in the way of Arm's manuals.
func (m midr) String() string {
	return fmt.Sprintf("implementer %s part %s r%dp%d", m.implementerHex(), m.partHex(), m.variant, m.revision)
}

func (m midr) implementerHex() string { return fmt.Sprintf("0x%02x", m.implementer) }
func (m midr) partHex() string        { return fmt.Sprintf("0x%03x", m.part) }
func (m midr) variantHex() string     { return fmt.Sprintf("0x%x", m.variant) }
func (m midr) stepping() string       { return fmt.Sprintf("r%dp%d", m.variant, m.revision) }
