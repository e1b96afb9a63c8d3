package proxycheck

import (
	"bytes"
	"fmt"
	"testing"
)

// The hints of the distributions that people run on ARM servers.
func TestInstallHints(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	for _, tt := range []struct{ release, arch string }{
		{"PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nID=debian\n", "arm64"},
		{"PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\nID=debian\n", "amd64"},
		{"PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\nVERSION_ID=\"13\"\nID=debian\n", "arm64"},
		{"PRETTY_NAME=\"Ubuntu 24.04.1 LTS\"\nVERSION_ID=\"24.04\"\nID=ubuntu\nID_LIKE=debian\n", "arm64"},
		{"PRETTY_NAME=\"Ubuntu 22.04.5 LTS\"\nVERSION_ID=\"22.04\"\nID=ubuntu\nID_LIKE=debian\n", "arm64"},
		{"PRETTY_NAME=\"Oracle Linux Server 9.4\"\nID=\"ol\"\nID_LIKE=\"fedora\"\nVERSION_ID=\"9.4\"\n", "arm64"},
		{"PRETTY_NAME=\"Amazon Linux 2023\"\nID=\"amzn\"\nID_LIKE=\"fedora\"\nVERSION_ID=\"2023\"\n", "arm64"},
		{"PRETTY_NAME=\"Oracle Linux Server 8.10\"\nID=\"ol\"\nID_LIKE=\"fedora\"\nVERSION_ID=\"8.10\"\n", "arm64"},
		{"PRETTY_NAME=\"Rocky Linux 9.4 (Blue Onyx)\"\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\nVERSION_ID=\"9.4\"\n", "arm64"},
		{"", "arm64"},
	} {
		r := parseOSRelease([]byte(tt.release))
		fmt.Fprintf(&b, "== %s %s %s\n%s\n", r["ID"], r["VERSION_ID"], tt.arch, installHint(r, tt.arch))
	}
	golden(t, "install-hints.txt", b.Bytes())
}

func FuzzParseOSRelease(f *testing.F) {
	f.Add([]byte("ID=debian\nVERSION_ID=\"12\"\n"))
	f.Add([]byte("ID"))
	f.Add([]byte("=\n'\"\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		if installHint(parseOSRelease(file), "arm64") == "" {
			t.Error("no hint")
		}
	})
}
