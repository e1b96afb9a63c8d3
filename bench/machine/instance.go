package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"armrepro/proxycheck/process"
)

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
