package machine

import (
	"os"
	"runtime"
)

// LiveFacts asks the running system for what its files do not tell.
func LiveFacts(calibrate bool) *Live {
	l := &Live{Arch: runtime.GOARCH, PageSize: os.Getpagesize(), Calibrate: calibrate}
	cpuFacts(l)
	return l
}
