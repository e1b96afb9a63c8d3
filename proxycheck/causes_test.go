package proxycheck

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
)

// TestCauses has what was printed and logged by APISIX and nginx when they failed.
func TestCauses(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for printed, want := range map[string]string{
		"nginx: [emerg] bind() to 127.0.0.1:1 failed (98: Address already in use)":                              "ss -ltnp",
		fmt.Sprintf("nginx: [emerg] bind() to %s failed (98: Address already in use)", l.Addr()):                fmt.Sprintf("by process %d (", os.Getpid()),
		"nginx: [emerg] bind() to unix:/tmp/a/logs/worker_events.sock failed (98: Address already in use)":      "taken",
		"init_by_lua error: module 'resty.radixtree' not found:":                                                "make deps",
		"socket() failed (24: Too many open files)":                                                             "ulimit -n",
		"error loading module 'cjson' from file '/usr/local/apisix/deps/cjson.so': wrong ELF class: ELFCLASS32": "architecture",
		"lua_pack.so: cannot open shared object file: No such file or directory":                                "apisix-runtime",
		"librestyradixtree.so: undefined symbol: lua_newstate":                                                  "apisix-runtime",
		"/lib/libc.so.6: version `GLIBC_2.34' not found (required by /usr/local/openresty/nginx/sbin/nginx)":    "apisix-runtime",
		"2026/01/01 00:00:00 [alert] 1#1: worker process 2 exited on signal 11":                                 "crashed",
		"[crit] pwrite() failed (28: No space left on device)":                                                  "free some space",
		`mkdir() "/tmp/x" failed (30: Read-only file system)`:                                                   "TMPDIR",
		"[emerg] mmap(MAP_ANON|MAP_SHARED, 10485760) failed (12: Cannot allocate memory)":                       "memory",
		`nginx: [emerg] getpwnam("nobody") failed`:                                                              "does not exist",
		`{"error":"etcdserver: permission denied","message":"etcdserver: permission denied"}`:                   "--etcd-prefix",
		"failed to connect: certificate verify failed":                                                          "--etcd-cacert",
		"etcd cluster version 3.3.0 is less than the required version 3.4.0, please upgrade your etcd cluster":  "3.4 or newer",
		`nginx: [alert] could not open error log file: open() "/x/error.log" failed (13: Permission denied)`:    "as root",
		"something else": "",
	} {
		got := causeHint(printed)
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: hint %q, want %q in it", printed, got, want)
		}
	}
}
