package machine

import "golang.org/x/sys/cpu"

// readMIDR reads the register. The kernel answers in the CPU's place, if it
// shows HWCAP_CPUID; without that the instruction is illegal
// (https://docs.kernel.org/arch/arm64/cpu-feature-registers.html).
func readMIDR() uint64

// cpuFacts asks the CPU itself what it is.
func cpuFacts(l *Live) {
	if cpu.ARM64.HasCPUID {
		l.MIDR = readMIDR()
	}
}
