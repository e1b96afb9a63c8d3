package machine

// core is a row of the table of cores. The field's own tables are lscpu-arm.c
// of util-linux and arch/arm64/include/asm/cputype.h of Linux.
type core struct {
	implementer uint8
	part        uint16
	name        string
}

var cores = []core{
	{0x41, 0xd03, "Cortex-A53"},
	{0x41, 0xd07, "Cortex-A57"},
	{0x41, 0xd08, "Cortex-A72"},
	{0x41, 0xd0b, "Cortex-A76"},
	{0x41, 0xd0c, "Neoverse N1"},
	{0x41, 0xd40, "Neoverse V1"},
	{0x41, 0xd49, "Neoverse N2"},
	{0x41, 0xd4a, "Neoverse E1"},
	{0x41, 0xd4f, "Neoverse V2"},
	{0x41, 0xd83, "Neoverse V3AE"},
	{0x41, 0xd84, "Neoverse V3"},
	{0x41, 0xd85, "Cortex-X925"},
	{0x41, 0xd87, "Cortex-A725"},
	{0x41, 0xd8e, "Neoverse N3"},
	{0x42, 0x516, "ThunderX2"},
	{0x43, 0x0af, "ThunderX2"},
	{0x46, 0x001, "A64FX"},
	{0x46, 0x003, "Monaka"},
	{0x48, 0xd01, "TaiShan v110"},
	{0x48, 0xd02, "HIP09"},
	{0x48, 0xd06, "HIP12"},
	{0x4e, 0x004, "Carmel"},
	{0x4e, 0x010, "Olympus"},
	{0x51, 0x001, "Oryon"},
	{0x51, 0xc00, "Falkor"},
	{0x51, 0xc01, "Saphira"},
	{0x61, 0x022, "Icestorm (M1)"},
	{0x61, 0x023, "Firestorm (M1)"},
	{0x6d, 0xd49, "Neoverse N2"},
	{0x6d, 0xd84, "Neoverse V3"},
	{0x70, 0x662, "FTC662"},
	{0x70, 0x663, "FTC663"},
	{0x70, 0x862, "FTC862"},
	{0xc0, 0xac3, "Ampere-1"},
	{0xc0, 0xac4, "Ampere-1a"},
	{0xc0, 0xac5, "Ampere-1mx"},
}

// implementers are the companies that MIDR_EL1 names.
var implementers = map[uint8]string{
	0x41: "Arm",
	0x42: "Broadcom",
	0x43: "Cavium",
	0x46: "Fujitsu",
	0x48: "HiSilicon",
	0x4e: "NVIDIA",
	0x51: "Qualcomm",
	0x61: "Apple",
	0x6d: "Microsoft",
	0x70: "Phytium",
	0xc0: "Ampere",
}

// coreName is the name of a core, empty if the table does not have it.
func coreName(m midr) string {
	for _, c := range cores {
		if c.implementer == m.implementer && c.part == m.part {
			return c.name
		}
	}
	return ""
}
