package machine

import (
	"encoding/json"
	"fmt"
	"io/fs"

	"armrepro/proxycheck/process"
)

// cloudInitData is where cloud-init keeps what it was told by the cloud, for
// all to read; secrets are in another file. It holds the id of the instance
// too, which is not read.
const cloudInitData = "run/cloud-init/instance-data.json"

// cloudInitInstance is the machine type in cloud-init's data, which each cloud
// keeps in its own place: OCI's shape, Azure's vmSize, EC2's and Alibaba's
// instance type. The error says why there is none.
func cloudInitInstance(root fs.FS) (name, key string, err error) {
	b, err := process.ReadFile(root, cloudInitData)
	if err != nil {
		return "", "", err
	}
	return parseCloudInit(b)
}

func parseCloudInit(b []byte) (name, key string, err error) {
	type meta struct {
		InstanceType  string `json:"instance-type"`
		InstanceType2 string `json:"instance_type"`
		IMDS          struct {
			Compute struct {
				VMSize string `json:"vmSize"`
			} `json:"compute"`
		} `json:"imds"`
	}
	var data struct {
		DS struct {
			Shape string `json:"shape"`
			Meta  meta   `json:"meta_data"`
			Meta2 meta   `json:"meta-data"`
		} `json:"ds"`
	}
	if err := json.Unmarshal(b, &data); err != nil {
		return "", "", fmt.Errorf("parse %s: %w", cloudInitData, err)
	}
	for _, v := range []struct{ key, value string }{
		{"ds.shape", data.DS.Shape},
		{"ds.meta_data.imds.compute.vmSize", data.DS.Meta.IMDS.Compute.VMSize},
		{"ds.meta_data.instance-type", data.DS.Meta.InstanceType},
		{"ds.meta_data.instance_type", data.DS.Meta.InstanceType2},
		{"ds.meta-data.instance-type", data.DS.Meta2.InstanceType},
		{"ds.meta-data.instance_type", data.DS.Meta2.InstanceType2},
	} {
		name := process.Clean(v.value)
		if name == "" {
			continue
		}
		if err := checkName(name); err != nil {
			return "", "", fmt.Errorf("%s in %s is %w", v.key, cloudInitData, err)
		}
		return name, v.key, nil
	}
	return "", "", fmt.Errorf("%s does not tell the type", cloudInitData)
}
