package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"armrepro/proxycheck/process"
)

// nginxConfig fills the templates.
type nginxConfig struct {
	// Modules are the files to load.
	Modules []string
	Workers int
	// Connections is what each worker may have open.
	Connections int
	// KeepaliveRequests is after how many requests a client's connection is
	// closed; 0 leaves it at nginx's default.
	KeepaliveRequests int
	// Rounds of MD5 are the proxy's work on each request.
	Rounds int
	// Pairs are the addresses to listen on and, for a proxy, where each
	// leads.
	Pairs []nginxPair
}

type nginxPair struct{ Listen, To string }

// Every path is below the prefix, so that nothing of an installed nginx is
// touched and no privilege is needed.
const nginxHead = `{{range .Modules}}load_module {{.}};
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
{{if .KeepaliveRequests}}  keepalive_requests {{.KeepaliveRequests}};
{{end}}  client_body_temp_path client_body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
`

// nginxUpstream is the upstream of the published benchmarks. Its backlog lets
// thousands connect at once.
const nginxUpstream = nginxHead + `{{range .Pairs}}  server {
    listen {{.Listen}} backlog=16384;
    location / { echo_duplicate 1 "` + answerBody + `"; }
  }
{{end}}}
`

// nginxProxy stands for the gateway: it has so much to do on each request that
// its single worker is the bottleneck, as APISIX's is. To the upstreams it
// keeps as many connections as APISIX.
const nginxProxy = nginxHead + `{{range $i, $pair := .Pairs}}  upstream peer{{$i}} {
    server {{$pair.To}};
    keepalive 320;
  }
  server {
    listen {{$pair.Listen}};
    location / {
      access_by_lua_block {
        local s = "armrepro"
        for i = 1, {{$.Rounds}} do s = ngx.md5(s) end
      }
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_pass http://peer{{$i}};
    }
  }
{{end}}}
`

var nginxTemplates = template.Must(
	template.Must(template.New("upstream").Parse(nginxUpstream)).New("proxy").Parse(nginxProxy))

// renderNginx is the configuration of the upstream or the proxy.
func renderNginx(role string, cfg nginxConfig) (string, error) {
	var b strings.Builder
	if err := nginxTemplates.ExecuteTemplate(&b, role, cfg); err != nil {
		return "", fmt.Errorf("write configuration of nginx: %w", err)
	}
	return b.String(), nil
}

// startNginx starts an nginx in a folder of its own below dir.
func startNginx(ctx context.Context, path, dir, role string, cfg nginxConfig) (*server, error) {
	text, err := renderNginx(role, cfg)
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp(dir, role)
	if err != nil {
		return nil, fmt.Errorf("create folder of nginx: %w", err)
	}
	const private = 0o600
	file := filepath.Join(home, "nginx.conf")
	if err := os.WriteFile(file, []byte(text), private); err != nil {
		return nil, fmt.Errorf("write configuration of nginx: %w", err)
	}
	var at []string
	for _, pair := range cfg.Pairs {
		at = append(at, pair.Listen)
	}
	return startServer(ctx, "nginx as "+role, process.Config{Path: path, Args: []string{"-p", home, "-c", file}}, at...)
}
