package machine

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"armrepro/proxycheck/process"
)

// findFrequency compares what is claimed with what is measured.
func (d *detector) findFrequency() {
	f := &d.m.CPU.Frequency
	err := d.hosts
	if err == nil {
		f.ClaimedMHz, f.ClaimedBy, err = d.claimedMHz(d.firstCPU())
	}
	d.conclude("cpu.frequency.claimed_mhz", mhzText(f.ClaimedMHz), f.ClaimedBy, err)
	why := "the best of several runs of a chain of additions, each a cycle"
	switch {
	case d.live == nil:
		why = "only a running machine can be measured"
	case !d.live.Calibrate:
		why = "it was not asked for"
	case d.m.Emulated:
		why = "the CPU is emulated"
	default:
		f.MeasuredMHz = math.Round(MeasureMHz())
	}
	d.conclude("cpu.frequency.measured_mhz", mhzText(f.MeasuredMHz), why, nil)
}

func mhzText(mhz float64) string {
	if mhz == 0 {
		return ""
	}
	return strconv.FormatFloat(mhz, 'f', 0, 64)
}

// claimedMHz is what the kernel or the firmware says about the frequency of a
// CPU, and where; the most telling source first. The error says why none does.
func (d *detector) claimedMHz(id int) (mhz float64, by string, err error) {
	type claim struct {
		mhz float64
		by  string
	}
	maxFile, nominalFile := process.CPUPath(id, "cpufreq/cpuinfo_max_freq"), process.CPUPath(id, "acpi_cppc/nominal_freq")
	maxKHz, maxErr := process.ReadUint(d.root, maxFile)
	nominal, nominalErr := process.ReadUint(d.root, nominalFile)
	claims := []claim{
		{float64(maxKHz) / 1000, maxFile}, {float64(nominal), nominalFile}, {modelMHz(d.first.model), "the model name"},
	}
	for _, p := range d.smbios {
		claims = append(claims, claim{float64(p.currentMHz), "SMBIOS"})
	}
	claims = append(claims, claim{deviceTreeMHz(d.root), deviceTreeClock})
	if d.m.Arch == "amd64" {
		claims = append(claims, claim{d.first.mhz, "cpu MHz in proc/cpuinfo"})
	}
	for _, c := range claims {
		if sensibleMHz(c.mhz) {
			return c.mhz, c.by, nil
		}
	}
	return 0, "", cmp.Or(maxErr, nominalErr, errors.New("the kernel claims a frequency that makes no sense"))
}

// sensibleMHz tells frequencies from what firmware writes when it knows none.
func sensibleMHz(mhz float64) bool { return mhz >= 100 && mhz <= 20_000 }

// modelMHz takes the frequency out of a model name such as "… @ 2.80GHz"; 0
// if it has none.
func modelMHz(model string) float64 {
	_, after, _ := strings.Cut(model, "@ ")
	digits, isGHz := strings.CutSuffix(after, "GHz")
	ghz, err := strconv.ParseFloat(digits, 64)
	if !isGHz || err != nil {
		return 0
	}
	return ghz * 1000
}

const (
	deviceTree = "sys/firmware/devicetree/base/"
	// deviceTreeClock is a big-endian number of hertz.
	deviceTreeClock = deviceTree + "cpus/cpu@0/clock-frequency"
)

// deviceTreeMHz is the frequency of the first CPU in the device tree; 0 if it is
// not there.
func deviceTreeMHz(root fs.FS) float64 {
	b, _ := process.ReadFile(root, deviceTreeClock)
	switch len(b) {
	case 4:
		return float64(binary.BigEndian.Uint32(b)) / 1e6
	case 8:
		return float64(binary.BigEndian.Uint64(b)) / 1e6
	}
	return 0
}
