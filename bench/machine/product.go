package machine

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"armrepro/proxycheck/process"
)

// product names what a chip with this core is sold as: by what the firmware
// calls it, and by what fits core, timer and cloud. Where that leaves several or
// contradicts itself, it names them all.
func (d *detector) product(m midr) (name, why string) {
	const unknown = " fits no product in the table"
	facts := d.facts(m)
	fitting, unsure := d.fitting()
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
	case unsure:
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

// fitting lists the names of the products that all kinds of core fit. Unsure says
// that one alone does, and is no more than possible: it is found in one cloud only,
// and which cloud this is is unknown, and other chips may have such a core and such a
// timer.
func (d *detector) fitting() (names []string, unsure bool) {
	for i, k := range d.cores.kinds {
		alike, possible := d.fittingCore(k.midr)
		if i == 0 {
			names, unsure = alike, possible
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(alike, name) })
	}
	return names, unsure && len(names) == 1
}

func (d *detector) fittingCore(m midr) (names []string, unsure bool) {
	own := func(timer float64) bool { return sameBogoMIPS(timer, d.bogoMIPS()) }
	for _, p := range products {
		if d.fits(p, m) && !slices.Contains(names, p.name) {
			names = append(names, p.name)
			unsure = p.cloud != "" && d.dmiErr != nil && !slices.ContainsFunc(ownTimers, own)
		}
	}
	if _, of, ok := strings.Cut(coreName(m), " ("); ok {
		names = append(names, appleName+strings.TrimSuffix(of, ")"))
	}
	return names, unsure && len(names) == 1
}

// fits says whether nothing that is known about the chip speaks against p.
func (d *detector) fits(p product, m midr) bool {
	timer := d.bogoMIPS()
	// Without a core and a timer nothing is left to tell it by.
	told := p.part != 0 || p.implementer != 0 && p.implementer != 0x41
	return p.hasCore(m) &&
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

// chipNames are the words that a chip newer than the table is known by, in lower
// case. Firmware that has nothing to say writes anything but these.
var chipNames = []string{
	"graviton", "axion", "cobalt", "altra", "ampereone", "emag", "neoverse", "cortex", "kunpeng", "yitian", "grace", "vera",
	"thunderx", "snapdragon", "oryon", "phytium", "a64fx", "monaka", "apple",
}

// hasNumber says whether text has a word that is rather a serial number than the
// number of a model, such as 7282C or Q80-30: one of five digits in a row, or a
// long one of three.
func hasNumber(text string) bool {
	const modelBytes = 8
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,/+", r) }) {
		if fiveDigits.MatchString(word) || len(word) > modelBytes && threeDigits.MatchString(word) {
			return true
		}
	}
	return false
}

var (
	fiveDigits  = regexp.MustCompile(`\d{5}`)
	threeDigits = regexp.MustCompile(`\d.*\d.*\d`)
)

// chipName is text if it names a chip that the table does not have.
func chipName(text string) string {
	name := productName(text)
	lower := strings.ToLower(name)
	named := slices.ContainsFunc(chipNames, func(word string) bool { return strings.Contains(lower, word) })
	// A mark that is in the table belongs to another core.
	known := slices.ContainsFunc(products, func(p product) bool { return strings.Contains(name+" ", p.mark+" ") })
	if !named || known || hasNumber(name) || checkName(text) != nil {
		return ""
	}
	return name
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
