package proxycheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// The parts that every release has in the same place.
type (
	listenAddr struct {
		IP   string `yaml:"ip"`
		Port int    `yaml:"port"`
	}
	adminKeyEntry struct {
		Name string `yaml:"name"`
		Key  string `yaml:"key"`
		Role string `yaml:"role"`
	}
	etcdSection struct {
		Host     []string `yaml:"host"`
		Prefix   string   `yaml:"prefix"`
		User     string   `yaml:"user,omitempty"`
		Password string   `yaml:"password,omitempty"`
		TLS      struct {
			Cert string `yaml:"cert,omitempty"`
			Key  string `yaml:"key,omitempty"`
		} `yaml:"tls,omitempty"`
	}
	cacheZone struct {
		Name       string `yaml:"name"`
		MemorySize string `yaml:"memory_size"`
		DiskSize   string `yaml:"disk_size,omitempty"`
		DiskPath   string `yaml:"disk_path,omitempty"`
		Levels     string `yaml:"cache_levels,omitempty"`
	}
	apisixSection struct {
		NodeListen    []listenAddr    `yaml:"node_listen"`
		EnableAdmin   bool            `yaml:"enable_admin"`
		AllowAdmin    []string        `yaml:"allow_admin,omitempty"`
		AdminKey      []adminKeyEntry `yaml:"admin_key,omitempty"`
		EnableControl bool            `yaml:"enable_control"`
		Control       listenAddr      `yaml:"control"`
		ProxyCache    struct {
			Zones []cacheZone `yaml:"zones"`
		} `yaml:"proxy_cache"`
		SSL struct {
			Enable bool         `yaml:"enable"`
			Listen []listenAddr `yaml:"listen"`
			// TrustedCertificate is for all that APISIX asks, etcd first.
			TrustedCertificate string `yaml:"ssl_trusted_certificate,omitempty"`
		} `yaml:"ssl"`
	}
	deploymentSection struct {
		Role            string `yaml:"role"`
		RoleTraditional struct {
			ConfigProvider string `yaml:"config_provider"`
		} `yaml:"role_traditional"`
		Admin struct {
			AllowAdmin  []string        `yaml:"allow_admin"`
			AdminKey    []adminKeyEntry `yaml:"admin_key"`
			AdminListen listenAddr      `yaml:"admin_listen"`
		} `yaml:"admin"`
		Etcd etcdSection `yaml:"etcd"`
	}
	configFile struct {
		APISIX      apisixSection `yaml:"apisix"`
		NginxConfig struct {
			WorkerProcesses int `yaml:"worker_processes"`
		} `yaml:"nginx_config"`
		// Etcd is 2.x's, Deployment 3.x's: each release ignores the
		// other's without a word.
		Etcd       *etcdSection       `yaml:"etcd,omitempty"`
		Deployment *deploymentSection `yaml:"deployment,omitempty"`
		Plugins    []string           `yaml:"plugins"`
		PluginAttr struct {
			Prometheus struct {
				ExportAddr listenAddr `yaml:"export_addr"`
			} `yaml:"prometheus"`
		} `yaml:"plugin_attr"`
	}
)

// configYAML is conf/config.yaml for the release. Whatever it doesn't name
// keeps the install's default, since the defaults are part of the figure.
func configYAML(s settings) ([]byte, error) {
	var c configFile
	allow := []string{"127.0.0.0/24"}
	keys := []adminKeyEntry{{Name: "admin", Key: s.adminKey, Role: "admin"}}
	etcd := etcdSection{Host: s.etcd.Endpoints, Prefix: s.etcdPrefix, User: s.etcd.User, Password: s.etcd.Password}
	etcd.TLS.Cert, etcd.TLS.Key = s.etcd.Cert, s.etcd.Key

	a := &c.APISIX
	a.NodeListen = []listenAddr{{s.ip, s.ports.Data}}
	a.EnableAdmin, a.EnableControl = true, true
	a.Control = listenAddr{s.ip, s.ports.Control}
	a.SSL.Enable = true
	a.SSL.Listen = []listenAddr{{s.ip, s.ports.TLS}}
	a.SSL.TrustedCertificate = s.etcd.CACert
	// A plugin of 3.18 makes nginx manage the cache folder even without
	// proxy-cache, and by default that is one in /tmp for all instances.
	a.ProxyCache.Zones = []cacheZone{
		{Name: "disk_cache_one", MemorySize: "50m", DiskSize: "1G", DiskPath: filepath.Join(s.home, "disk_cache_one"), Levels: "1:2"},
		{Name: "memory_cache", MemorySize: "50m"},
	}
	if s.version.isV3() {
		d := &deploymentSection{Role: "traditional", Etcd: etcd}
		d.RoleTraditional.ConfigProvider = "etcd"
		d.Admin.AllowAdmin, d.Admin.AdminKey = allow, keys
		d.Admin.AdminListen = listenAddr{s.ip, s.ports.Admin}
		c.Deployment = d
	} else {
		// With a port of its own 2.x's Admin API would listen on every
		// address, so it stays on the data port.
		a.AllowAdmin, a.AdminKey = allow, keys
		c.Etcd = &etcd
	}
	c.NginxConfig.WorkerProcesses = s.workers
	c.Plugins = s.plugins
	c.PluginAttr.Prometheus.ExportAddr = listenAddr{s.ip, s.ports.Prometheus}

	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(c), enc.Close()); err != nil {
		return nil, fmt.Errorf("write the configuration of APISIX: %w", err)
	}
	return b.Bytes(), nil
}

// parseEtcd reads what configYAML wrote about etcd. It is empty where the file
// says nothing or can't be read.
func parseEtcd(file []byte) (cfg Etcd, prefix string) {
	var c configFile
	if yaml.Unmarshal(file, &c) != nil {
		return Etcd{}, ""
	}
	e := c.Etcd
	if c.Deployment != nil {
		e = &c.Deployment.Etcd
	}
	if e == nil {
		return Etcd{}, ""
	}
	cfg = Etcd{
		Endpoints: e.Host, User: e.User, Password: e.Password,
		CACert: c.APISIX.SSL.TrustedCertificate, Cert: e.TLS.Cert, Key: e.TLS.Key,
	}
	return cfg, e.Prefix
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

// plugins is the install's default list less droppedPlugins, in its order.
func (in *Install) plugins(ctx context.Context) ([]string, error) {
	var list []string
	var err error
	if in.Version.defaultsInLua() {
		list, err = in.pluginsFromLua(ctx)
	} else {
		list, err = in.pluginsFromYAML()
	}
	if err == nil && len(list) == 0 {
		err = errors.New("the list is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("read the default plugins of APISIX %s: %w", in.Version, err)
	}
	return slices.DeleteFunc(list, func(p string) bool { return slices.Contains(droppedPlugins, p) }), nil
}

func (in *Install) pluginsFromYAML() ([]string, error) {
	file, err := os.ReadFile(filepath.Join(in.Home, "conf/config-default.yaml"))
	if err != nil {
		return nil, err
	}
	return parsePlugins(file)
}

// parsePlugins reads the plugin list of a config-default.yaml.
func parsePlugins(file []byte) ([]string, error) {
	var c struct {
		Plugins []string `yaml:"plugins"`
	}
	if err := yaml.Unmarshal(file, &c); err != nil {
		return nil, err
	}
	return c.Plugins, nil
}

// printPlugins prints the list of apisix/cli/config.lua, which is a Lua program
// that returns a table.
const printPlugins = `for _, name in ipairs(dofile("apisix/cli/config.lua").plugins) do print(name) end`

func (in *Install) pluginsFromLua(ctx context.Context) ([]string, error) {
	out, err := in.lua(ctx, in.Home, "-e", printPlugins)
	return strings.Fields(out), err
}
