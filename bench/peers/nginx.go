package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"armrepro/upstream"
)

// nginxConfig fills nginxTemplate.
type nginxConfig struct {
	// Modules are the files to load.
	Modules []string
	Workers int
	// Connections is what each worker may have open.
	Connections int
	// KeepaliveRequests is after how many requests a client's connection is
	// closed.
	KeepaliveRequests int
	// Rounds of MD5 are the proxy's work on each request.
	Rounds  int
	Servers []nginxServer
}

// nginxServer is an address to listen on and, for a proxy, where it leads.
type nginxServer struct{ Listen, To string }

// maxConnections is what an nginx worker may have open: all of the largest
// load, should one worker get them.
const maxConnections = 20480

// nginxTemplate is the upstream of the published benchmarks, or a proxy that stands
// for the gateway: it has so much to do on each request that its single worker is
// the bottleneck, as APISIX's is. To the upstreams it keeps as many connections as
// APISIX. The backlog lets thousands connect at once. Every path is below the
// prefix, so that nothing of an installed nginx is touched and no privilege is
// needed.
var nginxTemplate = template.Must(template.New("nginx").Parse(`
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
  keepalive_requests {{.KeepaliveRequests}};
  client_body_temp_path client_body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
{{range $i, $s := .Servers}}{{if .To}}  upstream peer{{$i}} {
    server {{.To}};
    keepalive 320;
  }
{{end}}  server {
    listen {{.Listen}} backlog=16384;
{{if .To}}    location / {
      access_by_lua_block {
        local s = "armrepro"
        for i = 1, {{$.Rounds}} do s = ngx.md5(s) end
      }
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_pass http://peer{{$i}};
    }
{{else}}    location / { echo_duplicate 1 "` + upstream.Body + `"; }
{{end}}  }
{{end}}}
`))

// startNginx starts an nginx in a folder of its own.
func (s *session) startNginx(ctx context.Context, name string, cfg nginxConfig) (*server, error) {
	cfg.Connections = int(min(s.openFiles, maxConnections))
	home, err := os.MkdirTemp(s.dir, "nginx")
	if err != nil {
		return nil, fmt.Errorf("create folder of nginx: %w", err)
	}
	var text strings.Builder
	file := filepath.Join(home, "nginx.conf")
	if err := errors.Join(nginxTemplate.Execute(&text, cfg), os.WriteFile(file, []byte(text.String()), 0o600)); err != nil {
		return nil, fmt.Errorf("write configuration of nginx: %w", err)
	}
	var at []string
	for _, s := range cfg.Servers {
		at = append(at, s.Listen)
	}
	return s.start(ctx, name, at, s.tools.nginx, "-p", home, "-c", file)
}
