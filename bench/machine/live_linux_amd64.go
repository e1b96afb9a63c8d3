package machine

import "github.com/klauspost/cpuid/v2"

// cpuFacts asks the CPU itself what it runs under.
func cpuFacts(l *Live) { l.HypervisorID = cpuid.CPU.HypervisorVendorString }
