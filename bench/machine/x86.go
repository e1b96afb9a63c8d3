package machine

import (
	"slices"
	"strings"

	"armrepro/proxycheck/process"
)

// x86Vendors are the companies behind the vendor_id of /proc/cpuinfo.
var x86Vendors = map[string]string{
	"GenuineIntel": "Intel",
	"AuthenticAMD": "AMD",
	"HygonGenuine": "Hygon",
	"CentaurHauls": "Centaur",
	"Shanghai":     "Zhaoxin",
}

// x86Core is a row of the table of x86 cores: the models first to last of a
// family, in the steppings from to to, have this core. The field's own table is
// arch/x86/include/asm/intel-family.h of Linux, and for AMD arch/x86/kernel/
// cpu/amd.c. Server parts only.
type x86Core struct {
	vendor                        string
	family, first, last, from, to int
	name                          string
}

var x86Cores = []x86Core{
	{"Intel", 6, 0x3f, 0x3f, 0, 255, "Haswell"},
	{"Intel", 6, 0x4f, 0x4f, 0, 255, "Broadwell"},
	{"Intel", 6, 0x55, 0x55, 0, 4, "Skylake"},
	{"Intel", 6, 0x55, 0x55, 5, 7, "Cascade Lake"},
	{"Intel", 6, 0x55, 0x55, 10, 11, "Cooper Lake"},
	{"Intel", 6, 0x6a, 0x6a, 0, 255, "Ice Lake"},
	{"Intel", 6, 0x6c, 0x6c, 0, 255, "Ice Lake"},
	{"Intel", 6, 0x8f, 0x8f, 0, 255, "Sapphire Rapids"},
	{"Intel", 6, 0xcf, 0xcf, 0, 255, "Emerald Rapids"},
	{"Intel", 6, 0xad, 0xad, 0, 255, "Granite Rapids"},
	{"Intel", 6, 0xae, 0xae, 0, 255, "Granite Rapids"},
	{"Intel", 6, 0xaf, 0xaf, 0, 255, "Sierra Forest"},
	{"AMD", 0x17, 0x00, 0x2f, 0, 255, "Zen"},
	{"AMD", 0x17, 0x30, 0x7f, 0, 255, "Zen 2"},
	{"AMD", 0x17, 0x90, 0xaf, 0, 255, "Zen 2"},
	{"AMD", 0x19, 0x00, 0x0f, 0, 255, "Zen 3"},
	{"AMD", 0x19, 0x10, 0x1f, 0, 255, "Zen 4"},
	{"AMD", 0x19, 0x20, 0x5f, 0, 255, "Zen 3"},
	{"AMD", 0x19, 0x60, 0x7f, 0, 255, "Zen 4"},
	{"AMD", 0x19, 0xa0, 0xaf, 0, 255, "Zen 4"},
	{"AMD", 0x1a, 0x00, 0x2f, 0, 255, "Zen 5"},
	{"AMD", 0x1a, 0x40, 0x4f, 0, 255, "Zen 5"},
	{"AMD", 0x1a, 0x60, 0x7f, 0, 255, "Zen 5"},
}

// x86CoreName is the name of a core, empty if the table does not have it.
func x86CoreName(vendor string, p processor) string {
	i := slices.IndexFunc(x86Cores, func(c x86Core) bool {
		return c.vendor == vendor && c.family == p.family &&
			c.first <= p.number && p.number <= c.last && c.from <= p.stepping && p.stepping <= c.to
	})
	if i < 0 {
		return ""
	}
	return x86Cores[i].name
}

// noise is what vendors' model names have and readers need not.
var noise = strings.NewReplacer("(R)", "", "(r)", "", "(TM)", "", "(tm)", "", "®", "", "™", "")

// productName makes a vendor's model name readable: trade marks and filling
// words are left out.
func productName(s string) string {
	s = strings.NewReplacer(" CPU @", " @", "Xeon CPU ", "Xeon ").Replace(noise.Replace(s))
	return process.Clean(strings.TrimSuffix(process.Clean(s), " Processor"))
}
