package report

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"armrepro/bench/machine"
)

// TestWriteMachine holds what is known of a machine to the terminal's width.
func TestWriteMachine(t *testing.T) {
	t.Parallel()
	m := validResult().Machine
	m.Emulated, m.EmulatedWhy = true, "CPUID shows TCGTCGTCGTCG, QEMU's translator"
	evidence := []machine.Evidence{
		{Field: "arch", Value: "arm64", Why: "this program was built for it"},
		{Field: "cpu.frequency.claimed_mhz", Why: "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq is not there"},
		{Field: "cpu.features", Value: strings.Join(machine.FeatureNames("arm64"), " "), Why: "AT_HWCAP in proc/self/auxv"},
	}
	for _, width := range []int{0, 30, 40, 80, 120} {
		var out strings.Builder
		if err := WriteMachine(&out, m, evidence, width); err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Join("machine", fmt.Sprintf("%d.txt", width)), out.String())
		if n := text.LongestLineLen(out.String()); width != 0 && n > max(width, minWidth) {
			t.Errorf("at width %d a line has %d columns", width, n)
		}
	}
}
