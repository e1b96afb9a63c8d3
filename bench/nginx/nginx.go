// Package nginx finds an installed nginx and configures it to run in a folder of its
// own, as the upstream of the published benchmarks.
package nginx

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/template"
	"time"

	"armrepro/proxycheck/process"
	"armrepro/upstream"
)

// Nginx is an installed nginx.
type Nginx struct {
	Path, Version string
	// build is what nginx -V prints.
	build string
}

var version = regexp.MustCompile(`(?m)^nginx version: [^/\s]*/(\S+)`)

// findTimeout bounds the wait for a version.
const findTimeout = 10 * time.Second

const installHint = "on Debian and its descendants:\n  apt-get install nginx libnginx-mod-http-echo"

// Find finds nginx on PATH, or where Debian keeps servers, which the PATH of users
// other than root leaves out. An error has a hint.
func Find(ctx context.Context) (*Nginx, error) {
	path, err := exec.LookPath("nginx")
	if err != nil {
		var elsewhere error
		if path, elsewhere = exec.LookPath("/usr/sbin/nginx"); elsewhere != nil {
			return nil, process.Hintf(installHint, "find nginx: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	out, err := process.Run(ctx, process.Config{Path: path, Args: []string{"-V"}})
	found := version.FindStringSubmatch(out)
	if err != nil || found == nil {
		return nil, process.Hintf(installHint, "find nginx: %s -V does not name a version: %.100q", path, out)
	}
	return &Nginx{Path: path, Version: found[1], build: out}, nil
}

var (
	modulesPath = regexp.MustCompile(`--modules-path=(\S+)`)
	prefix      = regexp.MustCompile(`--prefix=(\S+)`)
	echoBuiltIn = regexp.MustCompile(`--add-module=\S*echo-nginx-module`)
)

// moduleDir is the folder of the dynamic modules.
func (n *Nginx) moduleDir() string {
	dir, at := "modules", "/usr/local/nginx"
	if m := modulesPath.FindStringSubmatch(n.build); m != nil {
		dir = m[1]
	}
	if filepath.IsAbs(dir) {
		return dir
	}
	if m := prefix.FindStringSubmatch(n.build); m != nil {
		at = m[1]
	}
	return filepath.Join(at, dir)
}

// Modules are the files of dynamic modules, such as "ndk_http".
func (n *Nginx) Modules(names ...string) ([]string, error) {
	var files []string
	for _, name := range names {
		file := filepath.Join(n.moduleDir(), name+"_module.so")
		if _, err := os.Stat(file); err != nil {
			return nil, process.Hintf(installHint, "find a module of nginx: %w", err)
		}
		files = append(files, file)
	}
	return files, nil
}

// Echo are the files of the module that answers as the published benchmarks'
// upstream; none where it is built in, as in OpenResty.
func (n *Nginx) Echo() ([]string, error) {
	if echoBuiltIn.MatchString(n.build) {
		return nil, nil
	}
	return n.Modules("ngx_http_echo")
}

// Counts says whether it can count its requests (StatusPath).
func (n *Nginx) Counts() bool {
	return strings.Contains(n.build, "--with-http_stub_status_module")
}

// Config is an nginx whose every path is below its prefix, so that nothing of an
// installed one is touched and no privilege is needed.
type Config struct {
	// Modules are the files to load.
	Modules []string
	// Connections is what each of the Workers may have open.
	Workers, Connections int
	// HTTP is what else is in the block http.
	HTTP string
}

var configTemplate = template.Must(template.New("nginx").Parse(`
{{- range .Modules}}load_module {{.}};
{{end}}worker_processes {{.Workers}};
daemon off;
pid nginx.pid;
error_log stderr warn;
events {
  accept_mutex off;
  worker_connections {{.Connections}};
}
http {
  access_log off;
{{range .Temporary}}  {{.}}_temp_path {{.}};
{{end}}{{.HTTP}}}
`))

// Text is the configuration.
func (n *Nginx) Text(c Config) string {
	// They have folders outside the prefix, unless that part was left out.
	temporary := slices.DeleteFunc([]string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}, func(part string) bool {
		return strings.Contains(n.build, "--without-http_"+part+"_module")
	})
	var text strings.Builder
	// A Builder takes everything.
	_ = configTemplate.Execute(&text, struct {
		Config
		Temporary []string
	}{c, temporary})
	return text.String()
}

// Process writes the configuration into a folder and says how to start nginx in it.
func (n *Nginx) Process(dir string, c Config) (process.Config, error) {
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(n.Text(c)), 0o600); err != nil {
		return process.Config{}, fmt.Errorf("configure nginx: %w", err)
	}
	return process.Config{
		Path: n.Path, Args: []string{"-p", dir, "-c", file}, Dir: dir,
		// Its master has to tell its workers.
		DeathSignal: syscall.SIGTERM,
	}, nil
}

// StatusPath is where an upstream counts.
const StatusPath = "/armrepro-status"

// The backlog lets thousands connect at once.
var upstreamTemplate = template.Must(template.New("upstream").Parse(`  server {
{{range .Listen}}    listen {{.}} backlog=16384;
{{end}}    location / { echo_duplicate 1 "{{.Body}}"; }
    location /anything/ {
      default_type application/json;
      return 200 '{"method": "$request_method", "url": "http://$http_host$request_uri"}';
    }
{{if .Counts}}    location = {{.StatusPath}} { stub_status; }
{{end}}  }
`))

// Upstream is the server that answers like the upstream of the published benchmarks
// at the addresses; below /anything/ it tells about the request.
func Upstream(counts bool, listen ...string) string {
	var text strings.Builder
	_ = upstreamTemplate.Execute(&text, map[string]any{
		"Listen": listen, "Body": upstream.Body, "Counts": counts, "StatusPath": StatusPath,
	})
	return text.String()
}

var requestCount = regexp.MustCompile(`server accepts handled requests\s+\d+ \d+ (\d+)\s`)

// ParseStatus reads the number of requests so far from the answer on StatusPath, that
// request included.
func ParseStatus(body string) (uint64, error) {
	if m := requestCount.FindStringSubmatch(body); m != nil {
		return strconv.ParseUint(m[1], 10, 64)
	}
	return 0, fmt.Errorf("nginx's status has no count of requests: %.100q", body)
}
