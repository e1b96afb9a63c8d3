package proxycheck

import (
	"net/netip"
	"strings"
	"testing"
)

func TestEmptyProxy(t *testing.T) {
	t.Parallel()
	cfg := nativeIn(t, "3.18.0", "")
	cfg.Workers = 2
	upstream := netip.MustParseAddrPort(startUpstream(t))
	proxy, err := StartEmptyProxy(t.Context(), cfg, upstream)
	if err != nil {
		t.Fatal(err)
	}
	if err := proxy.Apply(t.Context(), plainRoute("")); err != nil {
		t.Error(err)
	}
	if workers, err := proxy.Workers(); err != nil || len(workers) != 2 {
		t.Errorf("workers %v, error %v", workers, err)
	}
	if _, err := StartEmptyProxy(t.Context(), cfg, upstream); err == nil || !strings.Contains(err.Error(), "listens on port") {
		t.Errorf("a second one on the port: error %v", err)
	}
	if err := proxy.Close(); err != nil {
		t.Error(err)
	}
	leavesNothing(t, cfg.RunDir)
}

// TestEmptyProxyFails has it named what keeps the proxy from starting.
func TestEmptyProxyFails(t *testing.T) {
	t.Parallel()
	cfg := nativeIn(t, "3.18.0", "")
	if _, err := StartEmptyProxy(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "no upstream") {
		t.Errorf("error %v", err)
	}
	leavesNothing(t, cfg.RunDir)
}
