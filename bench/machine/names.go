package machine

import (
	"io/fs"
	"regexp"

	"armrepro/proxycheck/process"
)

// maxCPUs is above the largest NR_CPUS that the kernel can be built with.
const maxCPUs = 8192

// maxNameBytes is longer than any name of a product, a system or a machine type.
const maxNameBytes = 96

// identifying matches what tells one machine from all others: serial numbers,
// uuids, the ids of instances.
var identifying = regexp.MustCompile(`(?i)^i-|serial|\bs/?n\b|\bi-([0-9a-f]{8,}|[0-9a-z]{16,})|\bocid1\.|[0-9a-f]{8}-[0-9a-f]{4}-|[0-9a-f]{12,}`)

// checkName says why text, which is foreign, is not shown as a name.
func checkName(text string) error {
	switch {
	case len(text) > maxNameBytes:
		return process.Defect("longer than a name")
	case identifying.MatchString(text):
		return process.Defect("like a serial number or an id, and not shown")
	}
	return nil
}

// readName reads a file that holds one name which is going to be shown.
func readName(root fs.FS, name string) (string, error) {
	line, err := process.ReadLine(root, name)
	if err != nil {
		return "", err
	}
	if err := checkName(line); err != nil {
		return "", &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return line, nil
}
