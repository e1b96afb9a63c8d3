package machine

import (
	"cmp"
	"errors"
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

var dmiFiles = []string{"sys_vendor", "product_name", "product_family", "product_version", "bios_vendor", "bios_version", "chassis_asset_tag"}

// readDMI reads what is there. The error says why nothing is.
func readDMI(root fs.FS) (dmi, error) {
	d := dmi{}
	var first error
	for _, name := range dmiFiles {
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

// mark is a row of a table: what has this name shows it in a file of DMI.
type mark struct{ name, file, value string }

// why says where the firmware has the mark.
func (d dmi) why(file string) string { return fmt.Sprintf("DMI %s is %q", file, d[file]) }

// cloudMarks are as cloud-init's ds-identify and systemd-detect-virt have
// them.
var cloudMarks = []mark{
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

// cloud names the cloud and says what tells it. Marks of two clouds leave it
// unknown.
func (d *detector) cloud() (name, why string, err error) {
	var clouds, marks []string
	for _, m := range cloudMarks {
		if d.dmi[m.file] == m.value {
			clouds, marks = append(clouds, m.name), append(marks, d.dmi.why(m.file))
		}
	}
	// Xen instances of AWS tell it in the version of the firmware only.
	if strings.HasSuffix(d.dmi["bios_version"], ".amazon") {
		clouds, marks = append(clouds, "AWS"), append(marks, d.dmi.why("bios_version"))
	}
	switch {
	case d.dmiErr != nil:
		return "", "", d.dmiErr
	case len(clouds) == 0:
		return "", "", errors.New("what DMI tells is none of the known clouds")
	case slices.ContainsFunc(clouds, func(c string) bool { return c != clouds[0] }):
		return "", "", errors.New("marks of several clouds: " + strings.Join(marks, ", "))
	}
	return clouds[0], marks[0], nil
}
