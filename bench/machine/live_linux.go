package machine

import (
	"os"
	"runtime"
)

// LiveFacts asks the running system for what its files do not tell.
func LiveFacts() *Live {
	l := &Live{Arch: runtime.GOARCH, PageSize: os.Getpagesize()}
	cpuFacts(l)
	return l
}
