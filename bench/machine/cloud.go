package machine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"armrepro/proxycheck/process"
)

// dmi is what the firmware tells in /sys/class/dmi/id. Files that may hold a
// serial number, a uuid or the id of an instance (board_asset_tag on AWS) are
// not among them; the chassis asset tag is compared and never shown.
type dmi map[string]string

// readDMI reads what is there. The error says why nothing is.
func readDMI(root fs.FS) (dmi, error) {
	d := dmi{}
	var first error
	for _, name := range []string{
		"sys_vendor", "product_name", "product_family", "product_version", "bios_vendor", "bios_version", "chassis_asset_tag",
	} {
		value, err := readName(root, path.Join("sys/class/dmi/id", name))
		if err == nil {
			d[name] = value
		}
		first = cmp.Or(first, err)
	}
	if len(d) == 0 {
		return nil, first
	}
	return d, nil
}

// why says where the firmware has a mark.
func (d dmi) why(file string) string { return fmt.Sprintf("DMI %s is %q", file, d[file]) }

// marks say by what a file of DMI holds, which for a hypervisor is no more than its
// beginning, which cloud and hypervisor this is; empty tells nothing. Of hypervisors
// the first that fits counts. cloud-init's ds-identify and systemd's detect-virt have
// the same ones.
var marks = []struct{ file, value, hypervisor, cloud string }{
	{"product_name", "KVM", "KVM", ""},
	{"sys_vendor", "Amazon EC2", "KVM", "AWS"},
	{"bios_vendor", "Amazon EC2", "", "AWS"},
	{"product_name", "Google Compute Engine", "KVM", "GCP"},
	{"product_name", "Alibaba Cloud ECS", "KVM", "Alibaba"},
	{"sys_vendor", "Hetzner", "KVM", "Hetzner"},
	{"product_name", "OpenStack", "KVM", ""},
	{"sys_vendor", "QEMU", "QEMU", ""},
	{"sys_vendor", "VMware", "VMware", ""},
	{"sys_vendor", "innotek GmbH", "VirtualBox", ""},
	{"sys_vendor", "Oracle Corporation VirtualBox", "VirtualBox", ""},
	{"sys_vendor", "Xen", "Xen", ""},
	{"bios_vendor", "Bochs", "Bochs", ""},
	{"sys_vendor", "Parallels", "Parallels", ""},
	{"bios_vendor", "BHYVE", "bhyve", ""},
	{"product_name", "Virtual Machine", "Hyper-V", ""},
	{"product_name", "Apple Virtualization", "Apple Virtualization", ""},
	{"sys_vendor", "Firecracker", "Firecracker", ""},
	{"chassis_asset_tag", "OracleCloud.com", "", "OCI"},
	// Hyper-V elsewhere has the same vendor but another tag.
	{"chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77", "", "Azure"},
	{"chassis_asset_tag", "HUAWEICLOUD", "", "Huawei"},
	{"sys_vendor", "Akamai", "", "Akamai"},
	{"sys_vendor", "Linode", "", "Akamai"},
	{"sys_vendor", "DigitalOcean", "", "DigitalOcean"},
	{"sys_vendor", "Scaleway", "", "Scaleway"},
	{"sys_vendor", "UpCloud", "", "UpCloud"},
	{"sys_vendor", "Vultr", "", "Vultr"},
}

// hypervisor is the one that the firmware names; empty if it names none.
func (d dmi) hypervisor() (name, why string) {
	for _, m := range marks {
		if m.hypervisor != "" && strings.HasPrefix(d[m.file], m.value) {
			return m.hypervisor, d.why(m.file)
		}
	}
	return "", ""
}

// cloud names the cloud and says what tells it. Marks of two clouds leave it
// unknown.
func (d *detector) cloud() (name, why string, err error) {
	var clouds, told []string
	for _, m := range marks {
		if m.cloud != "" && d.dmi[m.file] == m.value {
			clouds, told = append(clouds, m.cloud), append(told, d.dmi.why(m.file))
		}
	}
	// Xen instances of AWS tell it in the version of the firmware only.
	if strings.HasSuffix(d.dmi["bios_version"], ".amazon") {
		clouds, told = append(clouds, "AWS"), append(told, d.dmi.why("bios_version"))
	}
	switch {
	case d.dmiErr != nil:
		return "", "", d.dmiErr
	case len(clouds) == 0:
		return "", "", errors.New("what DMI tells is none of the known clouds")
	case slices.ContainsFunc(clouds, func(c string) bool { return c != clouds[0] }):
		return "", "", errors.New("marks of several clouds: " + strings.Join(told, ", "))
	}
	return clouds[0], told[0], nil
}

// cloudInitData is where cloud-init keeps what it was told by the cloud, for
// all to read; secrets are in another file. It holds the id of the instance
// too, which is not read.
const cloudInitData = "run/cloud-init/instance-data.json"

// instanceKeys are where each cloud keeps the machine type: OCI's shape, Azure's
// vmSize, EC2's and Alibaba's instance type.
var instanceKeys = []string{
	"ds.shape", "ds.meta_data.imds.compute.vmSize", "ds.meta_data.instance-type", "ds.meta_data.instance_type",
	"ds.meta-data.instance-type", "ds.meta-data.instance_type",
}

// cloudInitInstance is the machine type in cloud-init's data. The error says why
// there is none.
func cloudInitInstance(root fs.FS) (name, key string, err error) {
	b, err := process.ReadFile(root, cloudInitData)
	if err != nil {
		return "", "", err
	}
	var data any
	if err := json.Unmarshal(b, &data); err != nil {
		return "", "", fmt.Errorf("parse %s: %w", cloudInitData, err)
	}
	for _, key := range instanceKeys {
		at := data
		for field := range strings.SplitSeq(key, ".") {
			object, _ := at.(map[string]any)
			at = object[field]
		}
		text, _ := at.(string)
		name := process.Clean(text)
		if err := checkName(name); err != nil {
			return "", "", fmt.Errorf("%s in %s is %w", key, cloudInitData, err)
		}
		if name != "" {
			return name, key, nil
		}
	}
	return "", "", fmt.Errorf("%s does not tell the type", cloudInitData)
}

// awsType matches the machine types of AWS: c7g.large, m6g.metal, u7i-12tb.224xlarge.
var awsType = regexp.MustCompile(`^[a-z][a-z0-9-]*\.(nano|micro|small|medium|large|\d*xlarge|metal(-\d+xl)?)$`)

// instance is the cloud's name of the machine type.
func (d *detector) instance() (name, why string, err error) {
	told, key, err := cloudInitInstance(d.root)
	// Others on AWS, such as HVM domU, are Xen's name of the machine.
	if name := d.dmi["product_name"]; d.m.Cloud == "AWS" && awsType.MatchString(name) {
		why := "DMI product_name on AWS"
		if err == nil && told != name {
			why += fmt.Sprintf("; %s in %s is %s", key, cloudInitData, told)
		}
		return name, why, nil
	}
	if err != nil {
		return "", "", errors.New("DMI does not tell it, and " + process.Reason(err))
	}
	return told, key + " in " + cloudInitData, nil
}
