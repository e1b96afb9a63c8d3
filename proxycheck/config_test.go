package proxycheck

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

var update = flag.Bool("update", false, "write the goldens anew")

// golden compares got with the file testdata/name.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

func testEtcd() Etcd {
	return Etcd{
		Endpoints: []string{"https://127.0.0.1:2379", "https://127.0.0.1:22379"},
		User:      "root", Password: `00e2: "#'\`, CACert: "/tmp/ca.pem", Cert: "/tmp/cert.pem", Key: "/tmp/key.pem",
	}
}

// testYAML is the config.yaml of a release.
func testYAML(t *testing.T, v Version) []byte {
	t.Helper()
	cfg := Config{
		Install: &Install{Version: v}, Workers: 2, Etcd: testEtcd(), EtcdPrefix: "/armrepro-0a1b2c3d", AdminKey: "00e1",
	}
	if v.Patch > 0 || v.Minor == 0 {
		cfg.Etcd = Etcd{Endpoints: []string{"http://127.0.0.1:2379", "http://127.0.0.1:22379"}}
	}
	cfg = cfg.complete()
	config, err := cfg.configYAML("/tmp/armrepro-gateway-1", []string{"limit-count", "prometheus"})
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestConfigYAML(t *testing.T) {
	t.Parallel()
	for _, v := range []Version{{2, 14, 1}, {2, 15, 0}, {3, 0, 0}, {3, 18, 0}} {
		golden(t, "config-"+v.String()+".yaml", testYAML(t, v))
	}
}

// The two dialects have to say the same things in different places: each
// release ignores the other's without a word.
func TestConfigDialects(t *testing.T) {
	t.Parallel()
	read := func(v Version) map[string]any {
		var m map[string]any
		if err := yaml.Unmarshal(testYAML(t, v), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	v2, v3 := read(Version{2, 15, 0}), read(Version{3, 18, 0})
	if v2["etcd"] == nil || v2["deployment"] != nil {
		t.Error("2.15 wants etcd and no deployment")
	}
	if v3["etcd"] != nil || v3["deployment"] == nil {
		t.Error("3.18 wants deployment and no etcd")
	}
	if _, ok := v3["apisix"].(map[string]any)["admin_key"]; ok {
		t.Error("3.18 ignores apisix.admin_key")
	}
	// A key of digits must not turn into a number, nor 1:2 into a time.
	key := v2["apisix"].(map[string]any)["admin_key"].([]any)[0].(map[string]any)["key"]
	if key != "00e1" {
		t.Errorf("the admin key reads as %v", key)
	}
}

func TestParsePlugins(t *testing.T) {
	t.Parallel()
	got, err := parsePlugins([]byte("apisix:\n  node_listen: 9080\nplugins:  # sorted by priority\n  - real-ip   # 23000\n  #- skywalking\n  - prometheus\nstream_plugins:\n  - mqtt-proxy\n"))
	if err != nil || !slices.Equal(got, []string{"real-ip", "prometheus"}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parsePlugins([]byte("plugins: [")); err == nil {
		t.Error("broken YAML is no error")
	}
}

func FuzzParsePlugins(f *testing.F) {
	f.Add([]byte("plugins:\n  - real-ip\n"))
	f.Add([]byte("plugins: {}\n"))
	f.Add([]byte("plugins: [*a]\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		list, err := parsePlugins(file)
		if err != nil && list != nil {
			t.Error("both a list and an error")
		}
	})
}

func TestCheckNginxConf(t *testing.T) {
	t.Parallel()
	conf := []byte("master_process on;\nworker_processes 1;\nhttp {\n  server {\n    listen 127.0.0.1:9080 default_server reuseport;\n    listen 127.0.0.1:9443 ssl;\n  }\n}\n")
	if err := checkNginxConf(conf, 9080, 1); err != nil {
		t.Error(err)
	}
	if err := checkNginxConf(conf, 908, 1); err == nil {
		t.Error("port 908 isn't there")
	}
	if err := checkNginxConf(conf, 9080, 2); err == nil {
		t.Error("two workers aren't asked for")
	}
	if err := checkNginxConf(bytes.ReplaceAll(conf, []byte("processes 1"), []byte("processes auto")), 9080, 1); err == nil {
		t.Error("auto is not one worker")
	}
}
