package proxycheck

import (
	"testing"

	"armrepro/proxycheck/apisixtest"
	"armrepro/proxycheck/process"
)

// fakeInstall finds a fake install of that version.
func fakeInstall(t *testing.T, version, fault string) *Install {
	t.Helper()
	root := apisixtest.Install(t, version, fault)
	inst, err := Find(t.Context(), FindConfig{Root: root, Path: apisixtest.Path(root)})
	if err != nil {
		t.Fatalf("%v\n%s", err, process.Hint(err))
	}
	return inst
}

func TestNative(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2.14.1", "2.15.0", "3.0.0", "3.9.1", "3.18.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			inst := fakeInstall(t, version, "")
			before := checksums(t, inst.Home)
			gw, err := StartNative(t.Context(), Config{
				Install: inst, Etcd: etcdAt(startEtcd(t)), Ports: freePorts(t),
			})
			if err != nil {
				t.Fatalf("%v\n%s", err, process.Hint(err))
			}
			defer gw.Close()
			upstream := startUpstream(t)
			for _, r := range []Route{plainRoute(upstream), pluginRoute(upstream), plainRoute(upstream)} {
				if err := gw.Apply(t.Context(), r); err != nil {
					t.Fatalf("%v\n%s", err, process.Hint(err))
				}
			}
			pids, err := gw.Workers()
			if err != nil || len(pids) != 1 {
				t.Fatalf("workers: %v, %v", pids, err)
			}
			if err := gw.Close(); err != nil {
				t.Error(err)
			}
			if running(pids[0]) {
				t.Errorf("worker %d is alive after Close", pids[0])
			}
			sameChecksums(t, before, checksums(t, inst.Home))
		})
	}
}
