package machine

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// dmi is what the firmware tells in /sys/class/dmi/id. Files that may hold a
// serial number, a uuid or the id of an instance (board_asset_tag on AWS) are
// not among them; the chassis asset tag is compared and never shown.
type dmi map[string]string

var dmiFiles = []string{
	"sys_vendor", "product_name", "product_family", "product_version",
	"bios_vendor", "bios_version", "chassis_asset_tag",
}

const dmiDir = "sys/class/dmi/id"

// readDMI reads what is there. The error says why nothing is.
func readDMI(root fs.FS) (dmi, error) {
	d := dmi{}
	var first error
	for _, name := range dmiFiles {
		value, err := readName(root, path.Join(dmiDir, name))
		switch {
		case err == nil:
			d[name] = value
		case first == nil:
			first = err
		}
	}
	if len(d) == 0 {
		return nil, first
	}
	return d, nil
}

// cloudMark is a row of the table of clouds: the DMI file that tells and what
// it holds there.
type cloudMark struct {
	cloud, file, value string
}

// cloudMarks are as cloud-init's ds-identify and systemd-detect-virt have
// them.
var cloudMarks = []cloudMark{
	{"AWS", "sys_vendor", "Amazon EC2"},
	{"AWS", "bios_vendor", "Amazon EC2"},
	{"OCI", "chassis_asset_tag", "OracleCloud.com"},
	// Hyper-V elsewhere has the same vendor but another tag.
	{"Azure", "chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77"},
	{"GCP", "product_name", "Google Compute Engine"},
	{"Alibaba", "product_name", "Alibaba Cloud ECS"},
	{"Hetzner", "sys_vendor", "Hetzner"},
	{"Akamai", "sys_vendor", "Akamai"},
	{"Akamai", "sys_vendor", "Linode"},
	{"DigitalOcean", "sys_vendor", "DigitalOcean"},
	{"Huawei", "chassis_asset_tag", "HUAWEICLOUD"},
	{"Scaleway", "sys_vendor", "Scaleway"},
	{"UpCloud", "sys_vendor", "UpCloud"},
	{"Vultr", "sys_vendor", "Vultr"},
}

// cloudOf names the cloud and says what tells it. Marks of two clouds leave it
// unknown.
func cloudOf(d dmi) (cloud, why string) {
	var clouds, marks []string
	add := func(name, mark string) {
		marks = append(marks, mark)
		if !slices.Contains(clouds, name) {
			clouds = append(clouds, name)
		}
	}
	for _, m := range cloudMarks {
		if d[m.file] == m.value {
			add(m.cloud, fmt.Sprintf("DMI %s is %q", m.file, m.value))
		}
	}
	// Xen instances of AWS tell it in the version of the firmware only.
	if strings.HasSuffix(d["bios_version"], ".amazon") {
		add("AWS", fmt.Sprintf("DMI bios_version is %q", d["bios_version"]))
	}
	switch len(clouds) {
	case 0:
		return "", "what DMI tells is none of the known clouds"
	case 1:
		return clouds[0], marks[0]
	}
	return "", "marks of several clouds: " + strings.Join(marks, ", ")
}
