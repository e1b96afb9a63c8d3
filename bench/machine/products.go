package machine

import (
	"math"
	"slices"
	"strings"
)

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

// kunpeng is the mark of a line of chips.
const kunpeng = "Kunpeng"

// appleName is what the names of Apple's products begin with.
const appleName = "Apple "

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

// chip is what is known about a processor to find its product by.
type chip struct {
	midr midr
	// bogoMIPS is 0 if unknown.
	bogoMIPS float64
	// cloud is empty outside the known ones; cloudKnown is false where
	// nothing could be read about it.
	cloud      string
	cloudKnown bool
}

// ownTimers are the values of BogoMIPS that no other chip's timer has. The
// others are common: the architecture prescribes 2000 from Armv8.6 on.
var ownTimers = []float64{166.66, 243.75, 2100}

// ownCloud is the cloud that rents no Arm chips but its own.
const ownCloud = "AWS"

// fits says whether nothing that is known about the chip speaks against p.
func (p product) fits(c chip) bool {
	return p.hasCore(c.midr) &&
		(p.stepping == "" || p.stepping == c.midr.stepping()) &&
		p.fitsTimer(c) &&
		(c.cloud != ownCloud || p.cloud == ownCloud) &&
		(p.cloud == "" || !c.cloudKnown || p.cloud == c.cloud)
}

func (p product) fitsTimer(c chip) bool {
	if p.bogoMIPS == 0 {
		return true
	}
	if c.bogoMIPS == 0 {
		// Without a core and a timer nothing is left to tell it by.
		return p.part != 0 || p.implementer != 0 && p.implementer != 0x41
	}
	return sameBogoMIPS(p.bogoMIPS, c.bogoMIPS)
}

// needsCloud says that p is the chip only if the machine is in p's cloud, which
// nothing tells: other chips may have such a core and such a timer.
func (p product) needsCloud(c chip) bool {
	own := func(timer float64) bool { return sameBogoMIPS(timer, c.bogoMIPS) }
	return p.cloud != "" && !c.cloudKnown && !slices.ContainsFunc(ownTimers, own)
}

func (p product) hasCore(m midr) bool {
	return p.implementer == m.implementer && p.part == m.part
}

// sameBogoMIPS allows for what the kernel cuts off after two digits.
func sameBogoMIPS(a, b float64) bool { return math.Abs(a-b) < 0.015 }

// fittingProducts lists the names of all products that fit. Unsure says that one
// alone does, and is no more than possible: it is found in one cloud only, and
// which cloud this is is unknown.
func fittingProducts(c chip) (names []string, unsure bool) {
	for _, p := range products {
		if p.fits(c) && !slices.Contains(names, p.name) {
			names = append(names, p.name)
			unsure = p.needsCloud(c)
		}
	}
	if _, of, ok := strings.Cut(coreName(c.midr), " ("); ok {
		names = append(names, appleName+strings.TrimSuffix(of, ")"))
	}
	return names, unsure && len(names) == 1
}

// markedProduct is the product with this core that text, as the firmware wrote
// it, names, and the mark it has; empty if there is none. Of several the longest mark counts, since
// Altra is part of Altra Max.
func markedProduct(m midr, text string) (name, mark string) {
	// Trade marks stand between the words: Ampere(R) Altra(R) Max.
	text = productName(text)
	var found product
	for _, p := range products {
		if p.hasCore(m) && len(p.mark) > len(found.mark) && strings.Contains(text, p.mark) {
			found = p
		}
	}
	if full := text[strings.Index(text, found.mark):]; found.mark == kunpeng && full != kunpeng && !hasNumber(full) {
		return full, full
	}
	return found.name, found.mark
}

// alternatives joins names with "or", without repeating the words that all
// begin with: Ampere Altra or Altra Max.
func alternatives(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	first := strings.Fields(names[0])
	shared := len(first) - 1
	for _, name := range names[1:] {
		words := strings.Fields(name)
		n := 0
		for n < shared && n < len(words)-1 && words[n] == first[n] {
			n++
		}
		shared = n
	}
	short := []string{names[0]}
	for _, name := range names[1:] {
		short = append(short, strings.Join(strings.Fields(name)[shared:], " "))
	}
	last := len(short) - 1
	return strings.Join(short[:last], ", ") + " or " + short[last]
}
