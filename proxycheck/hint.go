package proxycheck

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// notInstalled is ErrNotInstalled with the ways to get APISIX on the
// distribution under root.
func notInstalled(root string) error {
	release, _ := os.ReadFile(filepath.Join(root, "/etc/os-release"))
	return &HintError{Err: ErrNotInstalled, Hint: installHint(parseOSRelease(release), runtime.GOARCH)}
}

// osRelease is what matters here of /etc/os-release.
type osRelease struct {
	id      string
	like    []string
	version string
	name    string
}

// parseOSRelease reads os-release(5). Unknown lines are skipped; a missing
// field is empty.
func parseOSRelease(file []byte) osRelease {
	var r osRelease
	for line := range strings.Lines(string(file)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			continue
		}
		value = strings.Trim(value, `"'`)
		switch key {
		case "ID":
			r.id = value
		case "ID_LIKE":
			r.like = strings.Fields(value)
		case "VERSION_ID":
			r.version = value
		case "PRETTY_NAME":
			r.name = value
		}
	}
	return r
}

// is says whether the distribution is or descends from one of ids.
func (r osRelease) is(ids ...string) bool {
	for _, id := range ids {
		if r.id == id {
			return true
		}
		for _, like := range r.like {
			if like == id {
				return true
			}
		}
	}
	return false
}

// installHint lists the ways to get APISIX, best first. The packages are those
// of https://apisix.apache.org/docs/apisix/installation-guide/: for Debian 12
// on both architectures, and for Red Hat 8 and compatible systems.
func installHint(r osRelease, goarch string) string {
	var b strings.Builder
	switch {
	case r.id == "debian" && r.version == "12":
		repo := "debian"
		if goarch == "arm64" {
			repo = "arm64/debian"
		}
		fmt.Fprintf(&b, `on Debian 12, install the package:
  curl -fsSL http://repos.apiseven.com/pubkey.gpg | sudo gpg --dearmor -o /usr/share/keyrings/apisix.gpg
  echo "deb [signed-by=/usr/share/keyrings/apisix.gpg] http://repos.apiseven.com/packages/%s debian12 main" | sudo tee /etc/apt/sources.list.d/apisix.list
  sudo apt update && sudo apt install -y apisix
`, repo)
	case r.is("rhel", "fedora", "centos"):
		b.WriteString(`on Red Hat 8 and compatible systems, install the package:
  sudo yum-config-manager --add-repo https://repos.apiseven.com/packages/redhat/apache-apisix.repo
  sudo yum install -y apisix
`)
	default:
		name := r.name
		if name == "" {
			name = "this system"
		}
		fmt.Fprintf(&b, "there are no APISIX packages for %s (only for Debian 12 and Red Hat 8)\n", name)
	}
	b.WriteString(`or run the container image against an etcd of its own, then --gateway attach:
  docker run -d --net=host -v "$PWD/config.yaml":/usr/local/apisix/conf/config.yaml apache/apisix:3.18.0-debian
or build from source, see https://apisix.apache.org/docs/apisix/building-apisix/, then --apisix-home DIR
or measure the built-in gateway, which needs no installation and isn't APISIX: --gateway builtin`)
	return b.String()
}
