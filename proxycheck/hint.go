package proxycheck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// parseOSRelease reads the variables of os-release(5), as far as lines are such.
func parseOSRelease(file []byte) map[string]string {
	r := map[string]string{}
	for line := range strings.Lines(string(file)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		r[key] = strings.Trim(value, `"'`)
	}
	return r
}

// repos is where the packages are; it is the address of the official guide and
// of the official images (https://github.com/apache/apisix-docker).
const repos = "https://repos.apiseven.com"

// installHint lists the ways to get APISIX, best first. There are packages for
// Debian 12, Ubuntu 24.04 and Red Hat 9 and compatible systems, for amd64 and
// arm64 alike (https://github.com/api7/apisix-build-tools).
func installHint(release map[string]string, goarch string) string {
	var b strings.Builder
	id, version := release["ID"], release["VERSION_ID"]
	major, _, _ := strings.Cut(version, ".")
	name := cmp.Or(release["PRETTY_NAME"], "this system")
	family := append(strings.Fields(release["ID_LIKE"]), id)
	switch {
	case id == "debian" && major == "12":
		debHint(&b, name, "debian", "debian12", goarch)
	case id == "ubuntu" && version == "24.04":
		debHint(&b, name, "ubuntu", "noble", goarch)
	case major == "9" && slices.ContainsFunc(family, func(f string) bool { return f == "rhel" || f == "centos" || f == "ol" }):
		fmt.Fprintf(&b, `on %s, install the package:
  sudo curl -fsSLo /etc/yum.repos.d/openresty.repo https://openresty.org/package/centos/openresty.repo
  sudo curl -fsSLo /etc/yum.repos.d/apache-apisix.repo %s/packages/redhat/apache-apisix.repo
  sudo dnf install -y apisix
`, name, repos)
	default:
		fmt.Fprintf(&b, "there are APISIX packages for Debian 12, Ubuntu 24.04 and Red Hat 9, not for %s\n", name)
	}
	b.WriteString(`or run the official image and attach to it:
  printf 'nginx_config: {worker_processes: 1}\ndeployment: {admin: {admin_key: [{name: admin, key: secret, role: admin}]}}\n' > config.yaml
  armrepro etcd &
  docker run -d --net=host -v "$PWD/config.yaml:/usr/local/apisix/conf/config.yaml" apache/apisix:3.18.0-debian
  armrepro run --gateway attach --admin-key secret
or build it from source, see https://apisix.apache.org/docs/apisix/building-apisix/, and pass --apisix-home DIR
or measure the built-in gateway, which needs no installation and isn't APISIX: --gateway builtin`)
	return b.String()
}

func debHint(b *strings.Builder, name, dist, codename, goarch string) {
	if goarch == "arm64" {
		dist = "arm64/" + dist
	}
	fmt.Fprintf(b, `on %s, install the package:
  curl -fsSL %[2]s/pubkey.gpg | sudo gpg --dearmor -o /usr/share/keyrings/apisix.gpg
  echo "deb [signed-by=/usr/share/keyrings/apisix.gpg] %[2]s/packages/%[3]s %[4]s main" | sudo tee /etc/apt/sources.list.d/apisix.list
  sudo apt update && sudo apt install -y apisix
`, name, repos, dist, codename)
}
