package apisixtest

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"syscall"
)

// upstreamEnv tells a worker of an empty proxy where requests go.
const upstreamEnv = "ARMREPRO_FAKE_PROXY_UPSTREAM"

var (
	peerLine  = regexp.MustCompile(`\{ "([0-9.]+)", ([0-9]+) \}`)
	proxyLine = []byte("proxy_pass http://backend")
)

// isEmptyProxy says whether a configuration is that of a proxy without APISIX.
func isEmptyProxy(path string) bool {
	conf, err := os.ReadFile(path)
	return err == nil && bytes.Contains(conf, proxyLine)
}

// runEmptyProxy is the master of a proxy without APISIX: it opens the socket and
// starts the workers.
func runEmptyProxy(path string) error {
	conf, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	listenAt, peer := listenLine.FindSubmatch(conf), peerLine.FindSubmatch(conf)
	if listenAt == nil || peer == nil {
		return fmt.Errorf("[emerg] no listen or no upstream in %s", path)
	}
	count, err := workersOf(conf)
	if err != nil {
		return err
	}
	socket, err := listen{string(listenAt[1]), true}.open()
	if err != nil {
		return fmt.Errorf("[emerg] bind() to %s failed (98: Address already in use)", listenAt[1])
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	var workers []*exec.Cmd
	for range count {
		cmd := exec.Command("/proc/self/exe")
		cmd.Args = []string{workerTitle}
		cmd.Env = append(os.Environ(), roleEnv+"=proxy", fmt.Sprintf("%s=http://%s:%s", upstreamEnv, peer[1], peer[2]))
		cmd.ExtraFiles = []*os.File{socket}
		if err := cmd.Start(); err != nil {
			return err
		}
		workers = append(workers, cmd)
	}
	<-signals
	for _, cmd := range workers {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	return nil
}

// runProxyWorker passes every request on until it is killed.
func runProxyWorker() int {
	upstream, err := url.Parse(os.Getenv(upstreamEnv))
	if err == nil {
		var l net.Listener
		if l, err = net.FileListener(os.NewFile(3, "listener")); err == nil {
			err = http.Serve(l, httputil.NewSingleHostReverseProxy(upstream))
		}
	}
	fmt.Fprintln(os.Stderr, "nginx:", err)
	return 2
}
