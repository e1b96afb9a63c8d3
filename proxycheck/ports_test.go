package proxycheck

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
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

	if err := CheckPorts([]Port{{"gateway", free, "--gateway-port"}}); err != nil {
		t.Errorf("a free port: %v", err)
	}
	err = CheckPorts([]Port{
		{"gateway", busy, "--gateway-port"}, {"upstream", free, "--upstream-port"}, {"etcd", busy6, "--etcd-port"},
	})
	if err == nil {
		t.Fatal("two busy ports are no error")
	}
	for _, want := range []string{
		fmt.Sprintf("use port %d for gateway: process %d", busy, os.Getpid()),
		fmt.Sprintf("use port %d for etcd: process %d", busy6, os.Getpid()),
		"listens on it",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), fmt.Sprint(free)) {
		t.Errorf("the error names the free port:\n%v", err)
	}
	for _, flag := range []string{"--gateway-port", "--etcd-port"} {
		if !strings.Contains(Hint(err), flag) {
			t.Errorf("the hint lacks %s: %s", flag, Hint(err))
		}
	}
}

func TestCheckPortsRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ports []Port
		want  string
	}{
		{[]Port{{"gateway", 0, "-"}}, "out of range"},
		{[]Port{{"gateway", 65536, "-"}}, "out of range"},
		{[]Port{{"gateway", 65000, "--a"}, {"admin", 65000, "--b"}}, "both gateway and admin want it"},
	} {
		if err := CheckPorts(tt.ports); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q in it", tt.ports, err, tt.want)
		}
	}
}
