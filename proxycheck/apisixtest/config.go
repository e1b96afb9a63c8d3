package apisixtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"armrepro/proxycheck/etcdhttp"
)

// defaultKey is the published key that every release up to 3.9 falls back to.
const defaultKey = "edd1c9f034335f136f87ad84b625c8f1"

// config is what the fake reads of an effective configuration.
type config struct {
	version string
	data    string
	admin   string // the data address on 2.x
	control string
	metrics string
	tls     string
	workers string
	key     string
	etcd    etcdhttp.Config
	prefix  string
	plugins []string
}

func isV3(version string) bool { return strings.HasPrefix(version, "3.") }

func defaultsInLua(version string) bool {
	f := strings.Split(version, ".")
	minor, _ := strconv.Atoi(f[1])
	return isV3(version) && minor >= 10
}

var versionPattern = regexp.MustCompile(`VERSION = "([^"]+)"`)

// readVersion reads the version of the APISIX that home links to or is.
func readVersion(home string) (string, error) {
	file, err := os.ReadFile(filepath.Join(home, "apisix/core/version.lua"))
	if err != nil {
		return "", err
	}
	m := versionPattern.FindSubmatch(file)
	if m == nil {
		return "", fmt.Errorf("no VERSION in %s", file)
	}
	return string(m[1]), nil
}

type address struct {
	IP   string `yaml:"ip"`
	Port int    `yaml:"port"`
}

func (a address) or(ip string, port int) string {
	if a.IP != "" {
		ip = a.IP
	}
	if a.Port != 0 {
		port = a.Port
	}
	return fmt.Sprintf("%s:%d", ip, port)
}

type adminKey struct {
	Key string `yaml:"key"`
}

type etcdConf struct {
	Host     []string `yaml:"host"`
	Prefix   string   `yaml:"prefix"`
	User     string   `yaml:"user"`
	Password string   `yaml:"password"`
	TLS      struct {
		Cert string `yaml:"cert"`
		Key  string `yaml:"key"`
	} `yaml:"tls"`
}

// userConfig is a config.yaml, both dialects in one.
type userConfig struct {
	APISIX struct {
		NodeListen any        `yaml:"node_listen"`
		AdminKey   []adminKey `yaml:"admin_key"`
		Control    address    `yaml:"control"`
		SSL        struct {
			Listen             []address `yaml:"listen"`
			TrustedCertificate string    `yaml:"ssl_trusted_certificate"`
		} `yaml:"ssl"`
	} `yaml:"apisix"`
	NginxConfig struct {
		WorkerProcesses string `yaml:"worker_processes"`
	} `yaml:"nginx_config"`
	Etcd       etcdConf `yaml:"etcd"`
	Deployment struct {
		Admin struct {
			AdminKey    []adminKey `yaml:"admin_key"`
			AdminListen address    `yaml:"admin_listen"`
		} `yaml:"admin"`
		Etcd etcdConf `yaml:"etcd"`
	} `yaml:"deployment"`
	Plugins    []string `yaml:"plugins"`
	PluginAttr struct {
		Prometheus struct {
			ExportAddr address `yaml:"export_addr"`
		} `yaml:"prometheus"`
	} `yaml:"plugin_attr"`
}

// readConfig merges home's config.yaml over the defaults as its release does:
// what stands in the other dialect's place is ignored without a word.
func readConfig(home string) (*config, error) {
	version, err := readVersion(home)
	if err != nil {
		return nil, err
	}
	file, err := os.ReadFile(filepath.Join(home, "conf/config.yaml"))
	if err != nil {
		return nil, fmt.Errorf("failed to read local yaml config of apisix: %w", err)
	}
	var u userConfig
	if err := yaml.Unmarshal(file, &u); err != nil {
		if isV3(version) {
			return nil, err
		}
		u = userConfig{} // 2.x goes on with the defaults
	}
	var listen []address
	if u.APISIX.NodeListen != nil {
		text, _ := yaml.Marshal(u.APISIX.NodeListen)
		if err := yaml.Unmarshal(text, &listen); err != nil {
			return nil, fmt.Errorf("failed to read local yaml config of apisix: failed to merge, path[apisix->node_listen] expect: table, but got: %T", u.APISIX.NodeListen)
		}
	}
	c := &config{
		version: version,
		data:    first(listen).or("0.0.0.0", 9080),
		control: u.APISIX.Control.or("127.0.0.1", 9090),
		metrics: u.PluginAttr.Prometheus.ExportAddr.or("127.0.0.1", 9091),
		tls:     first(u.APISIX.SSL.Listen).or("0.0.0.0", 9443),
		workers: u.NginxConfig.WorkerProcesses,
		plugins: u.Plugins,
	}
	keys, etcd := u.APISIX.AdminKey, u.Etcd
	c.admin = c.data
	if isV3(version) {
		keys, etcd = u.Deployment.Admin.AdminKey, u.Deployment.Etcd
		c.admin = u.Deployment.Admin.AdminListen.or("0.0.0.0", 9180)
	}
	c.key, c.prefix = defaultKey, etcd.Prefix
	c.etcd = etcdhttp.Config{
		Endpoints: etcd.Host, User: etcd.User, Password: etcd.Password,
		CACert: u.APISIX.SSL.TrustedCertificate, Cert: etcd.TLS.Cert, Key: etcd.TLS.Key,
	}
	if len(keys) > 0 {
		c.key = keys[0].Key
	}
	c.fillDefaults()
	return c, nil
}

func first(list []address) address {
	if len(list) == 0 {
		return address{}
	}
	return list[0]
}

// fillDefaults fills what the file left out, and lets the environment override
// what it may.
func (c *config) fillDefaults() {
	if len(c.etcd.Endpoints) == 0 {
		c.etcd.Endpoints = []string{"http://127.0.0.1:2379"}
	}
	if c.prefix == "" {
		c.prefix = "/apisix"
	}
	if c.workers == "" {
		c.workers = "auto"
	}
	if n := os.Getenv("APISIX_WORKER_PROCESSES"); n != "" {
		c.workers = n
	}
	if h := os.Getenv("APISIX_DEPLOYMENT_ETCD_HOST"); h != "" && isV3(c.version) {
		_ = yaml.Unmarshal([]byte(h), &c.etcd.Endpoints)
	}
	if len(c.plugins) == 0 {
		c.plugins = Plugins
	}
}

// listens are the addresses that nginx opens.
func (c *config) listens() []string {
	list := []string{c.data}
	if c.admin != c.data {
		list = append(list, c.admin)
	}
	return append(list, c.control, c.metrics, c.tls)
}

// nginxConf is what `apisix init` writes.
func (c *config) nginxConf(home string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "master_process on;\n\nworker_processes %s;\n\nerror_log logs/error.log warn;\npid logs/nginx.pid;\n\nhttp {\n", c.workers)
	for i, l := range c.listens() {
		extra := ""
		if i == 0 {
			extra = " default_server reuseport"
		}
		fmt.Fprintf(&b, "    server {\n        listen %s%s;\n    }\n", l, extra)
	}
	if usesEventsSocket(c.version) {
		fmt.Fprintf(&b, "    server {\n        listen unix:%s;\n    }\n", filepath.Join(home, eventsSocket))
	}
	b.WriteString("}\n")
	return b.String()
}

// eventsSocket is the unix socket that a killed master leaves behind.
const eventsSocket = "logs/worker_events.sock"

func usesEventsSocket(version string) bool {
	f := strings.Split(version, ".")
	minor, _ := strconv.Atoi(f[1])
	return isV3(version) && minor >= 8
}
