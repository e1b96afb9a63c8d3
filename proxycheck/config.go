package proxycheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// settings are what the config.yaml of a home says.
type settings struct {
	version    Version
	ip         string
	ports      NativePorts
	workers    int
	etcd       Etcd
	etcdPrefix string
	adminKey   string
	plugins    []string
	home       string
}

type object = map[string]any

// configYAML is conf/config.yaml for the release. Whatever it doesn't name
// keeps the install's default, since the defaults are part of the figure.
func configYAML(s settings) ([]byte, error) {
	listen := func(port int) object { return object{"ip": s.ip, "port": port} }
	apisix := object{
		"node_listen":    []object{listen(s.ports.Data)},
		"enable_admin":   true,
		"enable_control": true,
		"control":        listen(s.ports.Control),
		"ssl":            object{"enable": true, "listen": []object{listen(s.ports.TLS)}},
		// A plugin of 3.18 makes nginx manage the cache folder even without
		// proxy-cache, and by default that is one in /tmp for all instances.
		"proxy_cache": object{"zones": []object{
			{"name": "disk_cache_one", "memory_size": "50m", "disk_size": "1G", "disk_path": filepath.Join(s.home, "disk_cache_one"), "cache_levels": "1:2"},
			{"name": "memory_cache", "memory_size": "50m"},
		}},
	}
	if s.etcd.CACert != "" {
		// For all that APISIX asks by TLS; etcd is all that it has to.
		apisix["ssl"].(object)["ssl_trusted_certificate"] = s.etcd.CACert
	}
	config := object{
		"apisix":       apisix,
		"nginx_config": object{"worker_processes": s.workers},
		"plugins":      s.plugins,
		"plugin_attr":  object{"prometheus": object{"export_addr": listen(s.ports.Prometheus)}},
	}
	admin := object{
		"allow_admin": []string{"127.0.0.0/24"},
		"admin_key":   []object{{"name": "admin", "key": s.adminKey, "role": "admin"}},
	}
	// Each release ignores the other's places without a word.
	if s.version.isV3() {
		admin["admin_listen"] = listen(s.ports.Admin)
		config["deployment"] = object{
			"role": "traditional", "role_traditional": object{"config_provider": "etcd"}, "admin": admin, "etcd": s.etcdSection(),
		}
	} else {
		// With a port of its own 2.x's Admin API would listen on every
		// address, so it stays on the data port.
		maps.Copy(apisix, admin)
		config["etcd"] = s.etcdSection()
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(config), enc.Close()); err != nil {
		return nil, fmt.Errorf("write the configuration of APISIX: %w", err)
	}
	return b.Bytes(), nil
}

// etcdSection is the same in both dialects. APISIX takes one user for all
// endpoints.
type etcdSection struct {
	Host     []string `yaml:"host"`
	Prefix   string   `yaml:"prefix"`
	User     string   `yaml:"user,omitempty"`
	Password string   `yaml:"password,omitempty"`
	TLS      struct {
		Cert string `yaml:"cert,omitempty"`
		Key  string `yaml:"key,omitempty"`
	} `yaml:"tls,omitempty"`
}

func (s settings) etcdSection() etcdSection {
	e := etcdSection{Host: s.etcd.Endpoints, Prefix: s.etcdPrefix, User: s.etcd.User, Password: s.etcd.Password}
	e.TLS.Cert, e.TLS.Key = s.etcd.Cert, s.etcd.Key
	return e
}

var (
	listenPattern  = regexp.MustCompile(`(?m)^\s*listen\s+(?:[0-9.]+:)?([0-9]+)\b`)
	workersPattern = regexp.MustCompile(`(?m)^\s*worker_processes\s+(\S+);`)
)

// checkNginxConf makes sure that the nginx.conf that `apisix init` wrote is made
// from our configuration and not from a default.
func checkNginxConf(conf []byte, port, workers int) error {
	listens := false
	for _, m := range listenPattern.FindAllSubmatch(conf, -1) {
		listens = listens || string(m[1]) == strconv.Itoa(port)
	}
	if !listens {
		return fmt.Errorf("the nginx.conf that apisix init wrote doesn't listen on port %d", port)
	}
	m := workersPattern.FindSubmatch(conf)
	if m == nil || string(m[1]) != strconv.Itoa(workers) {
		return fmt.Errorf("the nginx.conf that apisix init wrote doesn't ask for %d worker processes", workers)
	}
	return nil
}

// droppedPlugins are those that the published benchmark took out: they cost
// about 12% of the throughput (https://github.com/apache/apisix/issues/1993).
var droppedPlugins = []string{"proxy-mirror", "proxy-cache"}

// printPlugins prints the list of apisix/cli/config.lua, which is a Lua program
// that returns a table.
const printPlugins = `for _, name in ipairs(dofile("apisix/cli/config.lua").plugins) do print(name) end`

// plugins is the install's default list less droppedPlugins, in its order.
func (in *Install) plugins(ctx context.Context) ([]string, error) {
	var list []string
	var err error
	if in.Version.defaultsInLua() {
		var out string
		out, err = in.lua(ctx, in.Home, "-e", printPlugins)
		list = strings.Fields(out)
	} else {
		var file []byte
		if file, err = os.ReadFile(filepath.Join(in.Home, "conf/config-default.yaml")); err == nil {
			list, err = parsePlugins(file)
		}
	}
	if err == nil && len(list) == 0 {
		err = errors.New("the list is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("read the default plugins of APISIX %s: %w", in.Version, err)
	}
	return slices.DeleteFunc(list, func(p string) bool { return slices.Contains(droppedPlugins, p) }), nil
}

// parsePlugins reads the plugin list of a config-default.yaml.
func parsePlugins(file []byte) ([]string, error) {
	var c struct {
		Plugins []string `yaml:"plugins"`
	}
	err := yaml.Unmarshal(file, &c)
	return c.Plugins, err
}
