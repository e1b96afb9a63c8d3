package main

import "armrepro/bench/machine"

// What every guest has.
const (
	guestCores = 2
	guestMiB   = 2048
)

// The commands that guests run.
const (
	describe = "armrepro machine --output json --explain"
	measure  = "armrepro run --gateway builtin --duration 4s --warmup 0 --runs 1 --output json"
)

// guest is a machine to boot and what armrepro has to say about it.
type guest struct {
	name string
	// cpu is the emulator's model.
	cpu      string
	firmware bool
	// smbios are the emulator's descriptions of structures.
	smbios []string
	// files are added to the guest's root folder.
	files map[string]string
	// measures says that a short run follows.
	measures bool
	want     identity
}

func (g guest) commands() []string {
	if g.measures {
		return []string{describe, measure}
	}
	return []string{describe}
}

// identity is what a guest is known by. Empty means unknown. All guests are alike in
// what is behind Hypervisor.
type identity struct {
	Core, Product, Cloud, Instance, Hypervisor, Container, Arch string

	PageSize, Cores int
	UsableCores     float64
	Emulated        bool
}

func identityOf(m machine.Machine) identity {
	return identity{
		m.CPU.Core, m.CPU.Product, m.Cloud, m.Instance, m.Hypervisor, m.Container, m.Arch,
		m.PageSize, m.Cores, m.UsableCores, m.Emulated,
	}
}

// secrets are what identifies one machine among all of its kind. Guests have
// them where real ones do, and they must not show up anywhere.
var secrets = []string{"i-0123456789abcdef0", "ec2secretserial", "ec2fe1d2-0000-4000-8000-00000000beef", "ocid1.instance.secret"}

// guests is every machine that is booted. The strings are those of the clouds
// themselves; type 0 is the firmware, 1 the system, 2 the board, 3 the chassis
// and 4 the processor.
var guests = []guest{
	{
		name: "c6g.large", cpu: "neoverse-n1", firmware: true,
		smbios: []string{
			"type=0,vendor=Amazon EC2,version=1.0,date=11/1/2018",
			"type=1,manufacturer=Amazon EC2,product=c6g.large,serial=ec2secretserial,uuid=ec2fe1d2-0000-4000-8000-00000000beef",
			"type=2,manufacturer=Amazon EC2,asset=i-0123456789abcdef0",
			"type=3,manufacturer=Amazon EC2,asset=Amazon EC2",
			"type=4,manufacturer=AWS,version=AWS Graviton2,serial=ec2secretserial",
		},
		measures: true,
		want:     identity{Core: "Neoverse N1", Product: "Graviton2", Cloud: "AWS", Instance: "c6g.large", Hypervisor: "KVM"},
	},
	{
		name: "OCI A1", cpu: "neoverse-n1", firmware: true,
		smbios: []string{
			"type=0,vendor=EFI Development Kit II / OVMF,version=1.5.1,date=06/16/2021",
			"type=1,manufacturer=QEMU,product=KVM Virtual Machine,version=virt-4.2,serial=ocid1.instance.secret",
			"type=3,manufacturer=QEMU,asset=OracleCloud.com",
		},
		// What cloud-init leaves behind tells the instance type.
		files: map[string]string{
			"run/cloud-init/instance-data.json": `{"ds": {"id": "ocid1.instance.secret", "shape": "VM.Standard.A1.Flex"}}`,
		},
		// An Altra is known by its timer, which is the emulator's own here.
		want: identity{Core: "Neoverse N1", Cloud: "OCI", Instance: "VM.Standard.A1.Flex", Hypervisor: "KVM"},
	},
	{
		// The emulator calls itself QEMU; a uuid alone is no proof of AWS.
		name: "no cloud", cpu: "cortex-a72", firmware: true,
		smbios: []string{"type=1,uuid=ec2fe1d2-0000-4000-8000-00000000beef"},
		want:   identity{Core: "Cortex-A72", Hypervisor: "QEMU"},
	},
	{
		// Pointer authentication in its usual cipher takes most of the time.
		name: "no firmware", cpu: "max,pauth-impdef=on",
		want: identity{Core: "QEMU max", Hypervisor: "QEMU"},
	},
}
