package machine

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"armrepro/proxycheck/process"
)

// findProduct names what a chip with this core is sold as: by what the firmware
// calls it, and by what fits core, timer and cloud. Where that leaves several or
// contradicts itself, it names them all.
func (d *detector) findProduct(m midr) (name, why string) {
	c := chip{midr: m, bogoMIPS: d.bogoMIPS(), cloud: d.m.Cloud, cloudKnown: d.dmiErr == nil}
	facts := c.facts()
	fitting, unsure := d.fittingAll(c)
	named, source := d.firmwareProducts(m)
	switch {
	case len(named) > 1:
		return alternatives(named), source
	case len(named) == 1 && (slices.Contains(fitting, named[0]) || strings.HasPrefix(named[0], kunpeng)):
		return named[0], source
	case len(named) == 1 && len(fitting) == 0:
		return named[0], source + "; " + facts + " fits no product in the table"
	case len(named) == 1:
		return alternatives(append(named, fitting...)), source + ", but " + facts + " fits " + alternatives(fitting)
	case unsure:
		return "", fmt.Sprintf("%s may be %s, but the cloud is unknown: %s", facts, fitting[0], process.Reason(d.dmiErr))
	case len(fitting) > 0:
		return alternatives(fitting), facts + fits(len(fitting), d.smbiosErr)
	}
	// A chip that is newer than the table, by the firmware's own name.
	if names := firmwareNames(d.smbios); len(names) > 0 {
		return alternatives(names), "the SMBIOS processor version; " + facts + " fits no product in the table"
	}
	if name := chipName(d.info.first().x86.model); name != "" {
		return name, "model name in proc/cpuinfo; " + facts + " fits no product in the table"
	}
	return "", facts + " fits no product in the table"
}

// fittingAll is fittingProducts for a machine of several kinds of core: the
// products that all of them fit.
func (d *detector) fittingAll(c chip) (names []string, unsure bool) {
	names, unsure = fittingProducts(c)
	for _, k := range d.cores.kinds {
		other := c
		other.midr = k.midr
		alike, _ := fittingProducts(other)
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(alike, name) })
	}
	return names, unsure && len(names) == 1
}

// facts words what products are told apart by.
func (c chip) facts() string {
	facts := c.midr.stepping()
	if c.bogoMIPS != 0 {
		facts += fmt.Sprintf(" with BogoMIPS %.2f", c.bogoMIPS)
	}
	if c.cloud != "" {
		facts += " on " + c.cloud
	}
	return facts
}

// fits says how far the evidence goes.
func fits(n int, smbiosErr error) string {
	if n == 1 {
		return " fits this one only"
	}
	why := " fits them alike"
	if smbiosErr != nil {
		why += "; " + process.Reason(smbiosErr)
	}
	return why
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
	look("model name in proc/cpuinfo", d.info.first().x86.model)
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
