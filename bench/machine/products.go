package machine

import "math"

// product is a row of the table of chips: it fits a machine if nothing that
// both of them tell disagrees.
type product struct {
	name        string
	implementer uint8
	part        uint16
	// stepping is variant and revision, such as r3p1; empty fits all.
	stepping string
	// bogoMIPS is twice the timer's frequency in MHz; 0 fits all. It tells
	// chips of equal MIDR apart.
	bogoMIPS float64
	// cloud is where alone the chip is found; empty is anywhere.
	cloud string
	// mark is what the firmware calls it, within the processor version of
	// SMBIOS type 4 or the product family of DMI. If it is the maker's name for
	// all chips of a line, the firmware's full name counts: such a line has
	// cores with one part number in several chips.
	mark string
}

const (
	// kunpeng is the mark of a line of chips.
	kunpeng = "Kunpeng"
	// appleName is what the names of Apple's products begin with.
	appleName = "Apple "
	// ownCloud is the cloud that rents no Arm chips but its own.
	ownCloud = "AWS"
)

var products = []product{
	{"Graviton1", 0x41, 0xd08, "r0p3", 166.66, "AWS", "Graviton"},
	{"Graviton2", 0x41, 0xd0c, "r3p1", 243.75, "AWS", "Graviton2"},
	{"Ampere Altra", 0x41, 0xd0c, "r3p1", 50, "", "Altra"},
	{"Ampere Altra Max", 0x41, 0xd0c, "r3p1", 50, "", "Altra Max"},
	{"Graviton3", 0x41, 0xd40, "r1p1", 2100, "AWS", "Graviton3"},
	{"Graviton4", 0x41, 0xd4f, "r0p1", 2000, "AWS", "Graviton4"},
	{"Google Axion", 0x41, 0xd4f, "r0p1", 2000, "GCP", "Axion"},
	{"NVIDIA Grace", 0x41, 0xd4f, "r0p0", 2000, "", "Grace"},
	{"Graviton5", 0x41, 0xd84, "", 0, "AWS", "Graviton5"},
	{"Azure Cobalt 100", 0x41, 0xd49, "r0p0", 2000, "Azure", "Cobalt 100"},
	{"Azure Cobalt 100", 0x6d, 0xd49, "", 0, "", "Cobalt 100"},
	{"Azure Cobalt 200", 0x6d, 0xd84, "", 0, "", "Cobalt 200"},
	{"Alibaba Yitian 710", 0x41, 0xd49, "r0p0", 100, "Alibaba", "Yitian 710"},
	{"AmpereOne", 0xc0, 0xac3, "r0p1", 50, "", "AmpereOne"},
	{"AmpereOne 1a", 0xc0, 0xac4, "r0p0", 2000, "", "AmpereOne"},
	{"Ampere eMAG", 0x50, 0x000, "r3p2", 80, "", "eMAG"},
	{"Kunpeng 920", 0x48, 0xd01, "", 0, "", kunpeng},
	{"Kunpeng 920", 0x48, 0xd02, "", 0, "", kunpeng},
	{"Kunpeng 920", 0x48, 0xd03, "", 0, "", kunpeng},
	{"Kunpeng 950", 0x48, 0xd06, "", 0, "", kunpeng},
	{"Kunpeng 920", 0x48, 0xd22, "", 0, "", kunpeng},
	{"Fujitsu A64FX", 0x46, 0x001, "", 0, "", "A64FX"},
	{"Marvell ThunderX2", 0x42, 0x516, "", 0, "", "ThunderX2"},
	{"Marvell ThunderX2", 0x43, 0x0af, "", 0, "", "ThunderX2"},
	// Virtual machines on Apple's chips do not show which one it is. Parallels
	// shows Arm as the implementer.
	{"Apple silicon", 0x61, 0x000, "", 48, "", "Apple silicon"},
	{"Apple silicon", 0x41, 0x000, "", 48, "", "Apple silicon"},
	{"Apple silicon", 0x00, 0x000, "", 48, "", "Apple silicon"},
}

// ownTimers are the values of BogoMIPS that no other chip's timer has. The
// others are common: the architecture prescribes 2000 from Armv8.6 on.
var ownTimers = []float64{166.66, 243.75, 2100}

func (p product) hasCore(m midr) bool { return part{p.implementer, p.part} == m.part() }

// sameBogoMIPS allows for what the kernel cuts off after two digits.
func sameBogoMIPS(a, b float64) bool { return math.Abs(a-b) < 0.015 }
