package proxycheck

import (
	"fmt"
	"os"
	"regexp"
	"strconv"

	"armrepro/proxycheck/process"
)

// causes are the known reasons for which APISIX's commands and nginx fail, by what
// they print or log then, and what to do about each. The first that fits counts.
var causes = []struct {
	shows *regexp.Regexp
	hint  string
}{
	{regexp.MustCompile(`Address already in use|still could not bind`),
		"the port was taken after it had been checked: see who listens on it with ss -ltnp, or use another"},
	{regexp.MustCompile(`module '[^']*' not found`),
		"a Lua library of the install is missing: reinstall APISIX, or run make deps in the source checkout"},
	{regexp.MustCompile(`wrong ELF class|invalid ELF header|Exec format error|cannot execute binary`),
		"a library or program of the install is built for another architecture: reinstall APISIX on this machine"},
	{regexp.MustCompile(`cannot open shared object file|undefined symbol|version .* not found \(required by`),
		"a C library is missing or does not fit this OpenResty: install apisix-runtime, and reinstall APISIX"},
	{regexp.MustCompile(`exited on signal (?:4|6|7|11)\b`),
		"a worker crashed: on arm64 use the OpenResty that belongs to this APISIX (apisix-runtime); older LuaJIT crashes there"},
	{regexp.MustCompile(`Too many open files`),
		"raise the limit of open files: ulimit -n 65536"},
	{regexp.MustCompile(`No space left on device`),
		"free some space on that disk, or set TMPDIR to a folder on another"},
	{regexp.MustCompile(`Read-only file system`),
		"set TMPDIR to a folder that can be written to"},
	{regexp.MustCompile(`Cannot allocate memory|not enough memory|malloc\(\S+\) failed`),
		"free some memory: APISIX takes about 100 MB, and more with every worker"},
	{regexp.MustCompile(`getpwnam\("([^"]*)"\) failed`),
		"the workers' user does not exist: create it, or run armrepro as another user than root"},
	{regexp.MustCompile(`permission denied"`),
		"grant etcd's user readwrite on the keys: on the prefix /armrepro-, or on the one that --etcd-prefix names"},
	{regexp.MustCompile(`certificate verify failed|unable to get local issuer`),
		"pass the authority that signed etcd's certificate as --etcd-cacert"},
	{regexp.MustCompile(`etcd cluster version .* is less than`),
		"use etcd 3.4 or newer, or leave --etcd out to use the embedded one"},
	{regexp.MustCompile(`[Pp]ermission denied`),
		"let this user read that file, or run armrepro as root"},
}

var bindFailed = regexp.MustCompile(`bind\(\) to \S*:(\d+) failed \(98: Address already in use\)`)

// causeHint says what to do about the cause that printed shows, if it is known.
func causeHint(printed string) string {
	if m := bindFailed.FindStringSubmatch(printed); m != nil {
		port, _ := strconv.Atoi(m[1])
		if holders, _ := process.Listeners(os.DirFS("/"), port); len(holders) > 0 {
			return fmt.Sprintf("port %d was taken after it had been checked, by %s: stop it, or use another port", port, &holders[0])
		}
	}
	for _, c := range causes {
		if c.shows.MatchString(printed) {
			return c.hint
		}
	}
	return ""
}
