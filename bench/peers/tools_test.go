package main

import (
	"path/filepath"
	"strings"
	"testing"

	"armrepro/bench/machine"
	"armrepro/proxycheck"
)

const (
	debianNginx = `nginx version: nginx/1.22.1
built with OpenSSL 3.0.17 1 Jul 2025
TLS SNI support enabled
configure arguments: --with-cc-opt='-g -O2' --prefix=/usr/share/nginx --conf-path=/etc/nginx/nginx.conf --modules-path=/usr/lib/nginx/modules --with-compat
`
	openresty = `nginx version: openresty/1.27.1.2
configure arguments: --prefix=/usr/local/openresty/nginx --with-cc-opt=-O2
`
)

func TestParseVersions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]nginxBuild{
		debianNginx:                        {"1.22.1", "/usr/lib/nginx/modules"},
		openresty:                          {"1.27.1.2", "/usr/local/openresty/nginx/modules"},
		"nginx version: nginx/1.29.0\n":    {"1.29.0", "/usr/local/nginx/modules"},
		"--modules-path=lib --prefix=/opt": {unknown, "/opt/lib"},
		"":                                 {unknown, "/usr/local/nginx/modules"},
	} {
		if got := parseNginxBuild(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"wrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 Will Glozer\nUsage: wrk": "4.1.0-3+b2",
		"wrk 4.2.0 [epoll] Copyright (C) 2012 Will Glozer":                         "4.2.0",
		"not found": unknown,
	} {
		if got := parseWrkVersion(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzParseNginxBuild(f *testing.F) {
	f.Add(debianNginx)
	f.Add(openresty)
	f.Fuzz(func(t *testing.T, text string) {
		b := parseNginxBuild(text)
		if b.version == "" || strings.ContainsAny(b.version+b.modules, "\n ") && b.version != unknown {
			t.Errorf("%+v", b)
		}
	})
}

func TestModules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := modules(dir, "ngx_http_echo_module.so")
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "ngx_http_echo_module.so")) ||
		!strings.Contains(proxycheck.Hint(err), "libnginx-mod-http-echo") {
		t.Errorf("%v, hint %q", err, proxycheck.Hint(err))
	}
}

func TestParsePortRange(t *testing.T) {
	t.Parallel()
	got, err := parsePortRange("32768\t60999\n")
	if want := (portRange{32768, 60999}); err != nil || got != want || got.size() != 28232 {
		t.Errorf("%+v of size %d, %v, want %+v", got, got.size(), err, want)
	}
	for _, bad := range []string{"", "1", "1 2 3", "2 1", "0 5", "1 65536", "-1 5", "a b"} {
		if got, err := parsePortRange(bad); err == nil {
			t.Errorf("%q is %+v", bad, got)
		}
	}
}

func FuzzParsePortRange(f *testing.F) {
	f.Add("32768\t60999\n")
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := parsePortRange(text); err == nil && (r.size() < 1 || r.size() > 65535) {
			t.Errorf("%q: %+v", text, r)
		}
	})
}

func TestPickCores(t *testing.T) {
	t.Parallel()
	cpu := func(id int, siblings ...int) machine.LogicalCPU {
		return machine.LogicalCPU{ID: id, Siblings: siblings}
	}
	for name, test := range map[string]struct {
		cpus []machine.LogicalCPU
		want corePair
	}{
		"two cores":          {[]machine.LogicalCPU{cpu(0, 0), cpu(1, 1)}, corePair{proxy: 0, others: 1}},
		"two threads":        {[]machine.LogicalCPU{cpu(0, 0, 1), cpu(1, 0, 1)}, corePair{proxy: 0, others: 1, shared: true}},
		"neighbours":         {[]machine.LogicalCPU{cpu(0, 0, 1), cpu(1, 0, 1), cpu(2, 2, 3), cpu(3, 2, 3)}, corePair{proxy: 0, others: 2}},
		"a part of the CPUs": {[]machine.LogicalCPU{cpu(5, 1, 5), cpu(7, 3, 7)}, corePair{proxy: 5, others: 7}},
	} {
		if got, err := pickCores(test.cpus); err != nil || got != test.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, test.want)
		}
	}
	if _, err := pickCores([]machine.LogicalCPU{cpu(0, 0)}); err != errOneCPU {
		t.Errorf("one CPU: %v", err)
	}
}
