package proxycheck

import (
	"cmp"
	"fmt"
	"strings"

	"armrepro/proxycheck/process"
)

// Version is an APISIX release.
type Version struct {
	Major, Minor, Patch int
}

// ParseVersion reads the three numbers of a version such as 3.18.0. A suffix
// after a hyphen, as release candidates have, is ignored.
func ParseVersion(s string) (Version, error) {
	numbers, _, _ := strings.Cut(strings.TrimSpace(s), "-")
	var v Version
	if _, err := fmt.Sscanf(numbers, "%d.%d.%d", &v.Major, &v.Minor, &v.Patch); err != nil || v.String() != numbers {
		return Version{}, fmt.Errorf("parse version %.40q: want three numbers such as 3.18.0", s)
	}
	return v, nil
}

func (v Version) String() string {
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}

// Compare is negative, zero or positive as v is older than, the same as or
// newer than w.
func (v Version) Compare(w Version) int {
	return cmp.Or(
		cmp.Compare(v.Major, w.Major),
		cmp.Compare(v.Minor, w.Minor),
		cmp.Compare(v.Patch, w.Patch),
	)
}

// The releases whose configuration this package knows: 2.14 and 2.15, and 3.0
// to 3.18. Newer ones are taken to be like the newest known.
var (
	oldestVersion = Version{2, 14, 0}
	newestVersion = Version{3, 18, 0}
)

// isV3 says whether v is configured in the 3.x way. The 2.99 preview of 3.0
// isn't known, so nothing lies between 2.15 and 3.0.
func (v Version) isV3() bool { return v.Major >= 3 }

// defaultsInLua says whether the default configuration is a Lua table rather
// than conf/config-default.yaml.
func (v Version) defaultsInLua() bool { return v.Compare(Version{3, 10, 0}) >= 0 }

// checkSupported refuses releases whose configuration isn't known.
func (v Version) checkSupported() error {
	known := v.Compare(oldestVersion) >= 0 && (v.isV3() || v.Compare(Version{2, 16, 0}) < 0)
	if known {
		return nil
	}
	return process.Hintf("install APISIX 2.14, 2.15 or 3.x, or start this one yourself and pass --gateway attach",
		"use APISIX %s: its configuration is not known", v)
}
