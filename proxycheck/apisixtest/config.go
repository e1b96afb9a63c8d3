package apisixtest

import (
	"cmp"
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
	// standalone is how a gateway without etcd gets its routes: from its
	// Admin API ("api") or from conf/apisix.yaml ("file").
	standalone string
}

func isV3(version string) bool { return strings.HasPrefix(version, "3.") }

// since3 says whether version is 3.minor or newer.
func since3(version string, minor int) bool {
	have, _ := strconv.Atoi(strings.Split(version, ".")[1])
	return isV3(version) && have >= minor
}

// defaultsInLua says where the release has its default configuration.
func defaultsInLua(version string) bool { return since3(version, 10) }

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

// readConfig merges home's config.yaml over the defaults as its release does:
// what stands in the other dialect's place is ignored without a word. The
// environment overrides what it may.
func readConfig(home string) (*config, error) {
	version, err := readVersion(home)
	if err != nil {
		return nil, err
	}
	file, err := os.ReadFile(filepath.Join(home, "conf/config.yaml"))
	var doc tree
	if err == nil {
		err = yaml.Unmarshal(file, &doc.value)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read local yaml config of apisix: %w", err)
	}
	c := &config{
		version: version,
		data:    doc.at("apisix.node_listen.0").address("0.0.0.0", "9080"),
		control: doc.at("apisix.control").address("127.0.0.1", "9090"),
		metrics: doc.at("plugin_attr.prometheus.export_addr").address("127.0.0.1", "9091"),
		tls:     doc.at("apisix.ssl.listen.0").address("0.0.0.0", "9443"),
		workers: cmp.Or(os.Getenv("APISIX_WORKER_PROCESSES"), doc.at("nginx_config.worker_processes").text("auto")),
		plugins: doc.at("plugins").texts(Plugins...),
	}
	c.admin = c.data
	key, etcd := doc.at("apisix.admin_key.0.key"), doc.at("etcd")
	if isV3(version) {
		key, etcd = doc.at("deployment.admin.admin_key.0.key"), doc.at("deployment.etcd")
		c.admin = doc.at("deployment.admin.admin_listen").address("0.0.0.0", "9180")
		c.standalone = doc.at("deployment").standalone()
	}
	c.key, c.prefix = key.text(defaultKey), etcd.at("prefix").text("/apisix")
	c.etcd = etcdhttp.Config{
		Endpoints: etcd.at("host").texts("http://127.0.0.1:2379"),
		User:      etcd.at("user").text(""),
		Password:  etcd.at("password").text(""),
		CACert:    doc.at("apisix.ssl.ssl_trusted_certificate").text(""),
		Cert:      etcd.at("tls.cert").text(""),
		Key:       etcd.at("tls.key").text(""),
	}
	if hosts := os.Getenv("APISIX_DEPLOYMENT_ETCD_HOST"); hosts != "" && isV3(version) {
		err = yaml.Unmarshal([]byte(hosts), &c.etcd.Endpoints)
	}
	return c, err
}

// tree is a part of a YAML document; the zero tree is one that isn't there.
type tree struct{ value any }

// at follows a path of names and indexes.
func (t tree) at(path string) tree {
	for name := range strings.SplitSeq(path, ".") {
		switch v := t.value.(type) {
		case map[string]any:
			t.value = v[name]
		case []any:
			index, err := strconv.Atoi(name)
			if err != nil || index >= len(v) {
				return tree{}
			}
			t.value = v[index]
		default:
			return tree{}
		}
	}
	return t
}

func (t tree) text(absent string) string {
	if t.value == nil {
		return absent
	}
	return fmt.Sprint(t.value)
}

func (t tree) texts(absent ...string) (texts []string) {
	list, _ := t.value.([]any)
	for _, v := range list {
		texts = append(texts, fmt.Sprint(v))
	}
	if texts == nil {
		return absent
	}
	return texts
}

func (t tree) address(ip, port string) string {
	return t.at("ip").text(ip) + ":" + t.at("port").text(port)
}

// standalone is the mode of 3.x, empty with etcd.
func (t tree) standalone() string {
	switch role := t.at("role").text("traditional"); {
	case t.at("role_"+role+".config_provider").text("etcd") != "yaml":
		return ""
	case role == "data_plane":
		return "file"
	}
	return "api"
}

// listen is an address that nginx opens, by each worker with reuseport.
type listen struct {
	address   string
	reuseport bool
}

// listens are the addresses that nginx opens.
func (c *config) listens() []listen {
	list := []listen{{c.data, true}, {c.tls, true}, {c.control, false}, {c.metrics, isV3(c.version)}}
	if c.admin != c.data && c.standalone != "file" {
		list = append(list, listen{c.admin, false})
	}
	return list
}

// nginxConf is what `apisix init` writes.
func (c *config) nginxConf(home string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "master_process on;\n\nworker_processes %s;\n\nerror_log logs/error.log warn;\npid logs/nginx.pid;\n\nhttp {\n", c.workers)
	for _, l := range c.listens() {
		extra := ""
		if l.reuseport {
			extra = " reuseport"
		}
		fmt.Fprintf(&b, "    server {\n        listen %s%s;\n    }\n", l.address, extra)
	}
	if usesEventsSocket(c.version) {
		fmt.Fprintf(&b, "    server {\n        listen unix:%s;\n    }\n", filepath.Join(home, eventsSocket))
	}
	b.WriteString("}\n")
	return b.String()
}

// eventsSocket is the unix socket that a killed master leaves behind.
const eventsSocket = "logs/worker_events.sock"

func usesEventsSocket(version string) bool { return since3(version, 8) }
