package machine

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"armrepro/proxycheck/process"
)

// product is a row of the table of chips: it fits a machine if nothing that
// both of them tell disagrees.
type product struct {
	name string
	part part
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
	{"Graviton1", part{0x41, 0xd08}, "r0p3", 166.66, "AWS", "Graviton"},
	{"Graviton2", part{0x41, 0xd0c}, "r3p1", 243.75, "AWS", "Graviton2"},
	{"Ampere Altra", part{0x41, 0xd0c}, "r3p1", 50, "", "Altra"},
	{"Ampere Altra Max", part{0x41, 0xd0c}, "r3p1", 50, "", "Altra Max"},
	{"Graviton3", part{0x41, 0xd40}, "r1p1", 2100, "AWS", "Graviton3"},
	{"Graviton4", part{0x41, 0xd4f}, "r0p1", 2000, "AWS", "Graviton4"},
	{"Google Axion", part{0x41, 0xd4f}, "r0p1", 2000, "GCP", "Axion"},
	{"NVIDIA Grace", part{0x41, 0xd4f}, "r0p0", 2000, "", "Grace"},
	{"Graviton5", part{0x41, 0xd84}, "", 0, "AWS", "Graviton5"},
	{"Azure Cobalt 100", part{0x41, 0xd49}, "r0p0", 2000, "Azure", "Cobalt 100"},
	{"Azure Cobalt 100", part{0x6d, 0xd49}, "", 0, "", "Cobalt 100"},
	{"Azure Cobalt 200", part{0x6d, 0xd84}, "", 0, "", "Cobalt 200"},
	{"Alibaba Yitian 710", part{0x41, 0xd49}, "r0p0", 100, "Alibaba", "Yitian 710"},
	{"AmpereOne", part{0xc0, 0xac3}, "r0p1", 50, "", "AmpereOne"},
	{"AmpereOne 1a", part{0xc0, 0xac4}, "r0p0", 2000, "", "AmpereOne"},
	{"Ampere eMAG", part{0x50, 0x000}, "r3p2", 80, "", "eMAG"},
	{"Kunpeng 920", part{0x48, 0xd01}, "", 0, "", kunpeng},
	{"Kunpeng 920", part{0x48, 0xd02}, "", 0, "", kunpeng},
	{"Kunpeng 920", part{0x48, 0xd03}, "", 0, "", kunpeng},
	{"Kunpeng 950", part{0x48, 0xd06}, "", 0, "", kunpeng},
	{"Kunpeng 920", part{0x48, 0xd22}, "", 0, "", kunpeng},
	{"Fujitsu A64FX", part{0x46, 0x001}, "", 0, "", "A64FX"},
	{"Marvell ThunderX2", part{0x42, 0x516}, "", 0, "", "ThunderX2"},
	{"Marvell ThunderX2", part{0x43, 0x0af}, "", 0, "", "ThunderX2"},
	// Virtual machines on Apple's chips do not show which one it is. Parallels
	// shows Arm as the implementer.
	{"Apple silicon", part{0x61, 0x000}, "", 48, "", "Apple silicon"},
	{"Apple silicon", part{0x41, 0x000}, "", 48, "", "Apple silicon"},
	{"Apple silicon", part{0x00, 0x000}, "", 48, "", "Apple silicon"},
}

// ownTimers are the values of BogoMIPS that no other chip's timer has. The
// others are common: the architecture prescribes 2000 from Armv8.6 on.
var ownTimers = []float64{166.66, 243.75, 2100}

// sameBogoMIPS allows for what the kernel cuts off after two digits.
func sameBogoMIPS(a, b float64) bool { return math.Abs(a-b) < 0.015 }

// product names what a chip with this core is sold as: by what the firmware
// calls it, and by what fits core, timer and cloud. Where that leaves several or
// contradicts itself, it names them all.
func (d *detector) product(m midr) (name, why string) {
	const unknown = " fits no product in the table"
	facts := d.facts(m)
	fitting := d.fitting()
	named, source := d.firmwareProducts(m)
	switch {
	case len(named) > 1:
		return alternatives(named), source
	case len(named) == 1 && (slices.Contains(fitting, named[0]) || strings.HasPrefix(named[0], kunpeng)):
		return named[0], source
	case len(named) == 1 && len(fitting) == 0:
		return named[0], source + "; " + facts + unknown
	case len(named) == 1:
		return alternatives(append(named, fitting...)), source + ", but " + facts + " fits " + alternatives(fitting)
	case len(fitting) == 1 && d.needsCloud(fitting[0], m):
		return "", fmt.Sprintf("%s may be %s, but the cloud is unknown: %s", facts, fitting[0], process.Reason(d.dmiErr))
	case len(fitting) == 1:
		return fitting[0], facts + " fits this one only"
	case len(fitting) > 0 && d.smbiosErr != nil:
		return alternatives(fitting), facts + " fits them alike; " + process.Reason(d.smbiosErr)
	case len(fitting) > 0:
		return alternatives(fitting), facts + " fits them alike"
	}
	// A chip that is newer than the table, by the firmware's own name.
	if names := firmwareNames(d.smbios); len(names) > 0 {
		return alternatives(names), "the SMBIOS processor version; " + facts + unknown
	}
	if name := chipName(d.first.model); name != "" {
		return name, "model name in proc/cpuinfo; " + facts + unknown
	}
	return "", facts + unknown
}

// facts words what products are told apart by.
func (d *detector) facts(m midr) string {
	facts := m.stepping()
	if timer := d.bogoMIPS(); timer != 0 {
		facts += fmt.Sprintf(" with BogoMIPS %.2f", timer)
	}
	if d.m.Cloud != "" {
		facts += " on " + d.m.Cloud
	}
	return facts
}

// fitting lists the names of the products that all kinds of core fit.
func (d *detector) fitting() (names []string) {
	for i, k := range d.kinds {
		var alike []string
		for _, p := range products {
			if d.fits(p, k.midr) && !slices.Contains(alike, p.name) {
				alike = append(alike, p.name)
			}
		}
		if _, of, ok := strings.Cut(coreName(k.midr), " ("); ok {
			alike = append(alike, appleName+strings.TrimSuffix(of, ")"))
		}
		if i == 0 {
			names = alike
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(alike, name) })
	}
	return names
}

// needsCloud says that the only product that fits is no more than possible: it is
// found in one cloud only, which cloud this is is unknown, and other chips may have
// such a core and such a timer.
func (d *detector) needsCloud(name string, m midr) bool {
	return d.dmiErr != nil &&
		slices.ContainsFunc(products, func(p product) bool { return p.name == name && p.cloud != "" && d.fits(p, m) }) &&
		!slices.ContainsFunc(ownTimers, func(timer float64) bool { return sameBogoMIPS(timer, d.bogoMIPS()) })
}

// fits says whether nothing that is known about the chip speaks against p.
func (d *detector) fits(p product, m midr) bool {
	timer := d.bogoMIPS()
	// Without a core and a timer nothing is left to tell it by.
	told := p.part.number != 0 || p.part.implementer != 0 && p.part.implementer != 0x41
	return p.part == m.part() &&
		(p.stepping == "" || p.stepping == m.stepping()) &&
		(p.bogoMIPS == 0 || timer == 0 && told || sameBogoMIPS(p.bogoMIPS, timer)) &&
		(d.m.Cloud != ownCloud || p.cloud == ownCloud) &&
		(p.cloud == "" || d.dmiErr != nil || p.cloud == d.m.Cloud)
}

// firmwareProducts lists the products with this core that the firmware names, and
// where it does: for each socket, and for the machine.
func (d *detector) firmwareProducts(m midr) (names []string, source string) {
	var sources []string
	look := func(where, text string) {
		name, mark := markedProduct(m, text)
		if name == "" || checkName(text) != nil {
			return
		}
		// The mark alone: a serial number may stand beside it.
		if source := fmt.Sprintf("%s says %q", where, mark); !slices.Contains(sources, source) {
			sources = append(sources, source)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, p := range d.smbios {
		look("SMBIOS processor version", p.version)
	}
	look("DMI product_family", d.dmi["product_family"])
	look("model name in proc/cpuinfo", d.first.model)
	return names, strings.Join(sources, ", ")
}

// firmwareNames lists what the firmware calls the processors, where those are
// names of chips.
func firmwareNames(processors []smbiosProcessor) []string {
	var names []string
	for _, p := range processors {
		if name := chipName(p.version); name != "" && p.manufacturer != "QEMU" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// chipNames are the words that a chip newer than the table is known by. Firmware
// that has nothing to say writes anything but these.
var chipNames = regexp.MustCompile("(?i)graviton|axion|cobalt|altra|ampereone|emag|neoverse|cortex|kunpeng|yitian|grace|vera|" +
	"thunderx|snapdragon|oryon|phytium|a64fx|monaka|apple")

// chipName is text if it names a chip that the table does not have.
func chipName(text string) string {
	name := productName(text)
	// A mark that is in the table belongs to another core.
	known := slices.ContainsFunc(products, func(p product) bool { return strings.Contains(name+" ", p.mark+" ") })
	if !chipNames.MatchString(name) || known || hasNumber(name) || checkName(text) != nil {
		return ""
	}
	return name
}

var (
	fiveDigits  = regexp.MustCompile(`\d{5}`)
	threeDigits = regexp.MustCompile(`\d.*\d.*\d`)
)

// hasNumber says whether text has a word that is rather a serial number than the
// number of a model, such as 7282C or Q80-30: one of five digits in a row, or a
// long one of three.
func hasNumber(text string) bool {
	const modelBytes = 8
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,/+", r) })
	return slices.ContainsFunc(words, func(word string) bool {
		return fiveDigits.MatchString(word) || len(word) > modelBytes && threeDigits.MatchString(word)
	})
}

// markedProduct is the product with this core that text, as the firmware wrote
// it, names, and the mark it has; empty if there is none. Of several the longest
// mark counts, since Altra is part of Altra Max.
func markedProduct(m midr, text string) (name, mark string) {
	// Trade marks stand between the words: Ampere(R) Altra(R) Max.
	text = productName(text)
	var found product
	for _, p := range products {
		if p.part == m.part() && len(p.mark) > len(found.mark) && strings.Contains(text, p.mark) {
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
	short := slices.Clone(names)
	for {
		word, _, more := strings.Cut(short[0], " ")
		if !more || slices.ContainsFunc(short, func(s string) bool { return !strings.HasPrefix(s, word+" ") }) {
			break
		}
		for i := range short {
			short[i] = short[i][len(word)+1:]
		}
	}
	last := len(names) - 1
	return strings.Join(append(names[:1:1], short[1:last]...), ", ") + " or " + short[last]
}
