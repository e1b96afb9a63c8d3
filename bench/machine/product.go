package machine

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// findProduct names what a chip with this core is sold as: by what the firmware
// calls it, and by what fits core, timer and cloud. Where that leaves several or
// contradicts itself, it names them all.
func (d *detector) findProduct(m midr) (name, why string) {
	c := chip{midr: m, bogoMIPS: d.bogoMIPS(), cloud: d.m.Cloud, cloudKnown: d.dmiErr == nil}
	facts := c.facts()
	fitting, unsure := fittingProducts(c)
	named, source := d.firmwareProducts(m)
	switch {
	case len(named) > 1:
		return alternatives(named), source
	case len(named) == 1 && slices.Contains(fitting, named[0]):
		return named[0], source
	case len(named) == 1 && len(fitting) == 0:
		return named[0], source + "; " + facts + " fits no product in the table"
	case len(named) == 1:
		return alternatives(append(named, fitting...)), source + ", but " + facts + " fits " + alternatives(fitting)
	case unsure:
		return "", fmt.Sprintf("%s may be %s, but the cloud is unknown: %s", facts, fitting[0], reason(d.dmiErr))
	case len(fitting) > 0:
		return alternatives(fitting), facts + fits(len(fitting), d.smbiosErr)
	}
	// A chip that is newer than the table, by the firmware's own name.
	if names := firmwareNames(d.smbios); len(names) > 0 {
		return alternatives(names), "the SMBIOS processor version; " + facts + " fits no product in the table"
	}
	return "", facts + " fits no product in the table"
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
		why += "; " + reason(smbiosErr)
	}
	return why
}

// firmwareProducts lists the products with this core that the firmware names, and
// where it does: for each socket, and for the machine.
func (d *detector) firmwareProducts(m midr) (names []string, source string) {
	var sources []string
	look := func(where, text string) {
		name := markedProduct(m, text)
		if name == "" || checkName(text) != nil {
			return
		}
		if mark := fmt.Sprintf("%s is %q", where, text); !slices.Contains(sources, mark) {
			sources = append(sources, mark)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, p := range d.smbios {
		look("SMBIOS processor version", p.version)
	}
	look("DMI product_family", d.dmi["product_family"])
	return names, strings.Join(sources, ", ")
}

// firmwareNames lists what the firmware calls the processors, where those are
// names of chips.
func firmwareNames(processors []smbiosProcessor) []string {
	var names []string
	for _, p := range processors {
		if name := firmwareName(p); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// aWord is what names have and serial numbers don't.
var aWord = regexp.MustCompile(`[a-z]{3,}`)

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
	if p.manufacturer == "QEMU" || !aWord.MatchString(name) || checkName(p.version) != nil {
		return ""
	}
	return name
}
