package apisixtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Plugins is the default plugin list of every fake install, in its order.
var Plugins = []string{
	"real-ip", "client-control", "cors", "key-auth", "proxy-cache", "proxy-mirror",
	"proxy-rewrite", "limit-conn", "limit-count", "limit-req", "prometheus", "serverless-post-function",
}

// Install writes an install of that APISIX version into a new folder and
// returns the folder. Below it the programs and files lie where packages put
// them: usr/bin/apisix, usr/local/apisix and usr/local/openresty. fault is a
// list as Faults describes it, or empty.
func Install(t testing.TB, version, fault string) (root string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: as in a real place, every user may enter.
	if root, err = os.MkdirTemp("", "apisix-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(root, "usr/local/apisix")
	files := map[string]string{
		"apisix/cli/apisix.lua":    "-- a fake\n",
		"apisix/core/version.lua":  fmt.Sprintf("-- a fake\nreturn {\n    VERSION = %q\n}\n", version),
		"conf/mime.types":          "types {\n    text/html html;\n}\n",
		"conf/debug.yaml":          "basic:\n  enable: false\n",
		"conf/config.yaml":         "# the install's own\n",
		"conf/cert/ssl.crt":        "a fake\n",
		"deps/share/lua/5.1/x.lua": "-- a fake\n",
		"logs/error.log":           "",
	}
	if defaultsInLua(version) {
		files["apisix/cli/config.lua"] = configLua()
	} else {
		files["conf/config-default.yaml"] = configDefault()
	}
	for name, text := range files {
		write(t, filepath.Join(home, name), text)
	}
	write(t, filepath.Join(root, faultFile), fault)
	write(t, filepath.Join(root, openRestyFile), openRestyOf(version))
	for link, target := range map[string]string{
		"usr/local/apisix/bin/apisix":           exe,
		"usr/bin/apisix":                        "../local/apisix/bin/apisix",
		"usr/local/openresty/bin/openresty":     exe,
		"usr/local/openresty/luajit/bin/luajit": exe,
	} {
		path := filepath.Join(root, link)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// openRestyFile holds the OpenResty's version beside the programs of an install.
const openRestyFile = "openresty-version"

// openRestyOf is the OpenResty that the APISIX release was built on.
func openRestyOf(version string) string {
	if defaultsInLua(version) {
		return "1.27.1.2"
	}
	if strings.HasPrefix(version, "3.9.") {
		return "1.25.3.1"
	}
	return "1.21.4.1"
}

// SetOpenResty makes the OpenResty of the install one of another version.
func SetOpenResty(t testing.TB, root, version string) {
	write(t, filepath.Join(root, openRestyFile), version)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Path is the value of PATH with which the programs of the install are found.
func Path(root string) string {
	return filepath.Join(root, "usr/bin") + ":" + filepath.Join(root, "usr/local/openresty/bin")
}

// configLua is a default configuration as APISIX has it from 3.10.
func configLua() string {
	var b strings.Builder
	b.WriteString("local _M = {\n  nginx_config = {\n    worker_processes = \"auto\",\n  },\n  plugins = {\n")
	for _, p := range Plugins {
		fmt.Fprintf(&b, "    %q,\n", p)
	}
	b.WriteString("    -- \"server-info\",\n  },\n  stream_plugins = { \"mqtt-proxy\" },\n}\nreturn _M\n")
	return b.String()
}

// configDefault is a default configuration as APISIX has it up to 3.9.
func configDefault() string {
	var b strings.Builder
	b.WriteString("nginx_config:\n  worker_processes: auto\nplugins:                          # plugin list (sorted by priority)\n")
	for i, p := range Plugins {
		fmt.Fprintf(&b, "  - %-30s # priority: %d\n", p, 23000-i)
	}
	b.WriteString("  #- server-info                  # priority: 990\nstream_plugins:\n  - mqtt-proxy\n")
	return b.String()
}
