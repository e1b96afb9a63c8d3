package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"text/template"
	"time"

	"armrepro/bench/nginx"
	"armrepro/proxycheck/process"
	"armrepro/upstream"
)

const (
	// readyTimeout bounds the start of a server, far above the 0.1 s it takes.
	readyTimeout = 15 * time.Second
	readyPoll    = 20 * time.Millisecond
	// stopGrace is how long a server may take to end before it is killed.
	stopGrace = 5 * time.Second
)

// server is a program that answers HTTP until it is stopped.
type server struct {
	name  string
	child *process.Process
}

// start starts a program, which runs until stopServers, and waits until it answers
// at every address.
func (s *session) start(ctx context.Context, name string, at []string, cfg process.Config) (*server, error) {
	child, err := process.Start(cfg)
	if err != nil {
		return nil, err
	}
	started := &server{name: name, child: child}
	s.servers = append(s.servers, started)
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for _, address := range at {
		err := process.Poll(ctx, readyPoll, func() error { return started.answers(ctx, address) })
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", name, err)
		}
	}
	return started, nil
}

// startBare starts this program as the bare server.
func (s *session) startBare(ctx context.Context, at ...string) (*server, error) {
	return s.start(ctx, "bare server", at, process.Config{Path: process.Self, Args: append([]string{bareCommand}, at...)})
}

// stopServers stops the servers in the reverse order: a proxy before what it leads
// to.
func (s *session) stopServers() error {
	var errs []error
	for _, started := range slices.Backward(s.servers) {
		if err := started.child.Stop(syscall.SIGTERM, stopGrace); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", started.name, err))
		}
	}
	s.servers = nil
	return errors.Join(errs...)
}

// answers is an error unless the address answers as an upstream does.
func (s *server) answers(ctx context.Context, address string) error {
	if err := s.alive(); err != nil {
		return process.Permanent(err)
	}
	body, err := process.Fetch(ctx, http.MethodGet, url(address), "")
	if err == nil && body != upstream.Body {
		err = fmt.Errorf("%s answers %q", url(address), body)
	}
	return err
}

// alive is an error that says what the server printed last if it has ended.
func (s *server) alive() error {
	select {
	case <-s.child.Done():
		return fmt.Errorf("%s has ended: %s", s.name, s.child.Tail())
	default:
		return nil
	}
}

// workers lists the processes that the server started.
func (s *server) workers() ([]int, error) {
	children, err := process.Children(os.DirFS("/"), s.child.Pid())
	var pids []int
	for _, c := range children {
		pids = append(pids, c.PID)
	}
	return pids, err
}

// serverCPU is the processor time that the proxy has used, and the upstreams
// together: those without a load use next to nothing.
func (s *session) serverCPU() (upstreams, proxy time.Duration, err error) {
	for _, server := range s.servers {
		pids, err := server.workers()
		if err != nil {
			return 0, 0, err
		}
		sum := &upstreams
		if server.name == proxyName {
			sum = &proxy
		}
		for _, pid := range append(pids, server.child.Pid()) {
			used, err := process.CPUTime(pid)
			if err != nil {
				return 0, 0, err
			}
			*sum += used
		}
	}
	return upstreams, proxy, nil
}

func url(address string) string { return "http://" + address + "/" }

// addresses are n addresses of the loopback, with a port that is free on all. None
// is 127.0.0.1, which connections leave from: one of them could take the port before
// the server that it is for.
func addresses(n int) ([]string, error) {
	block, port := 1+rand.IntN(254), "0"
	var found []string
	for i := range n {
		ln, err := net.Listen("tcp4", fmt.Sprintf("127.%d.0.%d:%s", block, 1+i, port))
		if err != nil {
			return nil, fmt.Errorf("find free addresses: %w", err)
		}
		defer ln.Close()
		found = append(found, ln.Addr().String())
		_, port, _ = strings.Cut(found[i], ":")
	}
	return found, nil
}

// maxConnections is what an nginx worker may have open: all of the largest
// load, should one worker get them.
const maxConnections = 20480

// proxy is a server that stands for the gateway: it has so much to do on each request
// that its single worker is the bottleneck, as APISIX's is.
type proxy struct{ Listen, To string }

// proxyTemplate keeps as many connections to an upstream as APISIX. The backlog lets
// thousands connect at once.
var proxyTemplate = template.Must(template.New("proxy").Parse(`
{{- range $i, $p := .Proxies}}  upstream peer{{$i}} {
    server {{.To}};
    keepalive 320;
  }
  server {
    listen {{.Listen}} backlog=16384;
    keepalive_requests {{$.KeepaliveRequests}};
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
{{end}}`))

// proxies configures them. keepaliveRequests is after how many requests a client's
// connection is closed; rounds of MD5 are their work on each request.
func proxies(keepaliveRequests, rounds int, list ...proxy) string {
	var text strings.Builder
	// A Builder takes everything.
	_ = proxyTemplate.Execute(&text, map[string]any{"Proxies": list, "KeepaliveRequests": keepaliveRequests, "Rounds": rounds})
	return text.String()
}

// startNginx starts an nginx in a folder of its own.
func (s *session) startNginx(ctx context.Context, name string, at []string, cfg nginx.Config) (*server, error) {
	cfg.Connections = int(min(s.openFiles, maxConnections))
	home, err := os.MkdirTemp(s.dir, "nginx")
	if err != nil {
		return nil, fmt.Errorf("create folder of nginx: %w", err)
	}
	child, err := s.tools.nginx.Process(home, cfg)
	if err != nil {
		return nil, err
	}
	return s.start(ctx, name, at, child)
}

// stack is a proxy with one upstream of each kind behind it: one and the same
// worker for all. The addresses are the proxy's that lead there.
type stack struct{ viaNginx, viaOwn, viaBare string }

const proxyName = "nginx as proxy"

// usualKeepalive is nginx's default for the requests after which it closes a
// client's connection.
const usualKeepalive = 1000

// startCalibrated starts a stack whose proxy has as much work as the options ask
// for. The proxy's worker runs on some CPUs, everything else of the section on
// others. The proxy is calibrated each time, since the machine's speed moves.
func (s *session) startCalibrated(ctx context.Context, keepaliveRequests int, others, proxys []int) (*stack, error) {
	if err := s.calibrate(ctx); err != nil {
		return nil, err
	}
	if err := process.SetAffinity(os.Getpid(), others); err != nil {
		return nil, err
	}
	st, err := s.startStack(ctx, keepaliveRequests)
	if err != nil {
		return nil, err
	}
	proxy := s.servers[len(s.servers)-1]
	workers, err := proxy.workers()
	for _, pid := range workers {
		err = errors.Join(err, process.SetAffinity(pid, proxys))
	}
	return st, err
}

// startStack starts the upstreams, then the proxy. keepaliveRequests is the
// proxy's.
func (s *session) startStack(ctx context.Context, keepaliveRequests int) (*stack, error) {
	at, err := addresses(6)
	if err != nil {
		return nil, err
	}
	peer, own, bare := at[0], at[1], at[2]
	if _, err := s.startNginx(ctx, "nginx as upstream", at[:1], nginx.Config{
		Modules: s.tools.echo, Workers: 2, HTTP: nginx.Upstream(false, peer),
	}); err != nil {
		return nil, err
	}
	if _, err := s.start(ctx, "armrepro upstream", []string{own}, process.Config{
		Path: s.tools.armrepro, Args: []string{"upstream", "--quiet", "--listen", own},
	}); err != nil {
		return nil, err
	}
	if _, err := s.startBare(ctx, bare); err != nil {
		return nil, err
	}
	if _, err := s.startNginx(ctx, proxyName, at[3:], nginx.Config{
		Modules: s.tools.lua, Workers: 1,
		HTTP: proxies(keepaliveRequests, s.rounds, proxy{at[3], peer}, proxy{at[4], own}, proxy{at[5], bare}),
	}); err != nil {
		return nil, err
	}
	return &stack{at[3], at[4], at[5]}, nil
}

// probeRounds are enough to tell what one takes.
const probeRounds = 100

// calibrate finds how many rounds of MD5 make a request take the proxy as much
// CPU time as the options ask for, so that it is the same bottleneck on a fast
// machine as on a slow one.
func (s *session) calibrate(ctx context.Context) error {
	var costs [2]time.Duration
	for i, rounds := range []int{0, probeRounds} {
		s.rounds = rounds
		st, err := s.startStack(ctx, usualKeepalive)
		var measured sample
		if err == nil {
			measured, err = s.runOnce(ctx, s.wrk(usual(st.viaNginx)), warmUp)
		}
		if err := errors.Join(err, s.stopServers()); err != nil {
			return fmt.Errorf("calibrate the proxy: %w", err)
		}
		costs[i] = measured.proxyCPU / time.Duration(max(1, measured.Requests))
	}
	var err error
	s.rounds, err = roundsFor(s.opts.proxyWork, costs[0], costs[1])
	s.progress("the proxy: %d rounds of MD5 for %s a request, of which nginx itself takes %s",
		s.rounds, s.opts.proxyWork, costs[0].Round(time.Microsecond/10))
	return err
}

// roundsFor is how many rounds take the time that is left of want, given the
// cost of a request without any and with probeRounds. It is 0 where nginx itself
// takes longer.
func roundsFor(want, bare, probed time.Duration) (int, error) {
	if probed <= bare {
		return 0, errors.New("calibrate the proxy: the machine is too noisy: a request took longer without its work than with it")
	}
	rounds := probeRounds * (want - bare).Seconds() / (probed - bare).Seconds()
	return max(0, int(rounds+0.5)), nil
}
