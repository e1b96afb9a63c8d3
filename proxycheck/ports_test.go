package proxycheck

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"armrepro/proxycheck/process"
)

func TestCheckPorts(t *testing.T) {
	t.Parallel()
	free := freePort(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	busy := l.Addr().(*net.TCPAddr).Port
	// A wildcard address of the other family is busy for us all the same.
	l6, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l6.Close()
	busy6 := l6.Addr().(*net.TCPAddr).Port

	if err := CheckPorts(t.Context(), []Port{{"gateway", free, "--gateway-port"}}); err != nil {
		t.Errorf("a free port: %v", err)
	}
	err = CheckPorts(t.Context(), []Port{
		{"gateway", busy, "--gateway-port"}, {"upstream", free, "--upstream-port"}, {"etcd", busy6, "--etcd-port"},
	})
	if err == nil {
		t.Fatal("two busy ports are no error")
	}
	for _, want := range []string{
		fmt.Sprintf("port %d (gateway) is in use by process %d", busy, os.Getpid()),
		fmt.Sprintf("port %d (etcd) is in use by process %d", busy6, os.Getpid()),
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), fmt.Sprint(free)) {
		t.Errorf("the error names the free port:\n%v", err)
	}
	for _, flag := range []string{"--gateway-port", "--etcd-port"} {
		if !strings.Contains(process.Hint(err), flag) {
			t.Errorf("the hint lacks %s: %s", flag, process.Hint(err))
		}
	}
}

// TestPortHeldByGateway suggests to measure what holds a port where that is a
// gateway.
func TestPortHeldByGateway(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]bool{"APISIX/3.18.0": true, "nginx": false} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Server", server) }))
		t.Cleanup(s.Close)
		err := CheckPorts(t.Context(), []Port{{"gateway", s.Listener.Addr().(*net.TCPAddr).Port, "--gateway-port"}})
		if hint := process.Hint(err); strings.Contains(hint, "--gateway attach") != want || !strings.Contains(hint, "--gateway-port") {
			t.Errorf("%s: hint %q", server, hint)
		}
		text := fmt.Sprintf("(gateway) is in use by process %d (", os.Getpid())
		if !strings.Contains(err.Error(), text) || strings.HasSuffix(err.Error(), "), which is an APISIX gateway") != want {
			t.Errorf("%s: error %v", server, err)
		}
	}
}

// TestPrivilegedPort listens as a user that may not.
func TestPrivilegedPort(t *testing.T) {
	t.Parallel()
	denied := &net.OpError{Op: "listen", Net: "tcp4", Err: os.NewSyscallError("bind", syscall.EACCES)}
	for _, hint := range []string{
		portHint(fmt.Errorf("listen on port 80 (gateway): %w", denied), "--gateway-port"),
		process.Hint(ExplainListen(fmt.Errorf("listen: %w", denied), "--gateway-port", "127.0.0.1:80")),
	} {
		if !strings.Contains(hint, "net.ipv4.ip_unprivileged_port_start") || !strings.Contains(hint, "--gateway-port") || strings.Contains(hint, "stop") {
			t.Errorf("hint %q", hint)
		}
	}
}
