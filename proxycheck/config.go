package proxycheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"armrepro/proxycheck/process"

	"go.yaml.in/yaml/v4"
)

type object = map[string]any

// configYAML is conf/config.yaml for a home with these plugins. Whatever it doesn't
// name keeps the install's default, since the defaults are part of the figure.
func (cfg Config) configYAML(home string, plugins []string) ([]byte, error) {
	listen := func(port int) object { return object{"ip": listenIP, "port": port} }
	apisix := object{
		"node_listen":    []object{listen(cfg.Ports.Data)},
		"enable_admin":   true,
		"enable_control": true,
		"control":        listen(cfg.Ports.Control),
		"ssl":            object{"enable": true, "listen": []object{listen(cfg.Ports.TLS)}},
		// A plugin of 3.18 makes nginx manage the cache folder even without
		// proxy-cache, and by default that is one in /tmp for all instances.
		"proxy_cache": object{"zones": []object{
			{"name": "disk_cache_one", "memory_size": "50m", "disk_size": "1G", "disk_path": filepath.Join(home, "disk_cache_one"), "cache_levels": "1:2"},
			{"name": "memory_cache", "memory_size": "50m"},
		}},
	}
	if cfg.Etcd.CACert != "" {
		// For all that APISIX asks by TLS; etcd is all that it has to.
		apisix["ssl"].(object)["ssl_trusted_certificate"] = cfg.Etcd.CACert
	}
	config := object{
		"apisix":       apisix,
		"nginx_config": object{"worker_processes": cfg.Workers},
		"plugins":      plugins,
		"plugin_attr":  object{"prometheus": object{"export_addr": listen(cfg.Ports.Prometheus)}},
	}
	admin := object{
		"allow_admin": []string{"127.0.0.0/24"},
		"admin_key":   []object{{"name": "admin", "key": cfg.AdminKey, "role": "admin"}},
	}
	// APISIX takes one user for all endpoints.
	etcd := object{"host": cfg.Etcd.Endpoints, "prefix": cfg.EtcdPrefix}
	if cfg.Etcd.User != "" {
		etcd["user"], etcd["password"] = cfg.Etcd.User, cfg.Etcd.Password
	}
	if cfg.Etcd.Cert != "" {
		etcd["tls"] = object{"cert": cfg.Etcd.Cert, "key": cfg.Etcd.Key}
	}
	// Each release ignores the other's places without a word.
	if cfg.Install.Version.isV3() {
		admin["admin_listen"] = listen(cfg.Ports.Admin)
		config["deployment"] = object{
			"role": "traditional", "role_traditional": object{"config_provider": "etcd"}, "admin": admin, "etcd": etcd,
		}
	} else {
		// With a port of its own 2.x's Admin API would listen on every
		// address, so it stays on the data port.
		maps.Copy(apisix, admin)
		config["etcd"] = etcd
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(config), enc.Close()); err != nil {
		return nil, fmt.Errorf("write the configuration of APISIX: %w", err)
	}
	return b.Bytes(), nil
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
		if file, err = process.ReadPath(in.file("conf/config-default.yaml")); err == nil {
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
