package machine

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"armrepro/proxycheck/process"
)

// findFrequency compares what is claimed with what is measured.
func (d *detector) findFrequency(calibrate bool) {
	f := &d.m.CPU.Frequency
	var err error
	if err = errHosts; !d.hostsFacts() {
		f.ClaimedMHz, f.ClaimedBy, err = d.claimedMHz(d.firstCPU())
	}
	d.report("cpu.frequency.claimed_mhz", mhzText(f.ClaimedMHz), f.ClaimedBy, err)
	const field = "cpu.frequency.measured_mhz"
	switch {
	case d.live == nil:
		d.because(field, "", "only a running machine can be measured")
	case !calibrate:
		d.because(field, "", "it was not asked for")
	case d.isEmulated():
		d.because(field, "", "the CPU is emulated")
	default:
		f.MeasuredMHz = math.Round(MeasureMHz())
		d.because(field, mhzText(f.MeasuredMHz), "the best of several runs of a chain of additions, each a cycle")
	}
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
	for _, s := range []struct {
		file   string
		perMHz float64
	}{
		{"cpufreq/cpuinfo_max_freq", 1000},
		{"acpi_cppc/nominal_freq", 1},
	} {
		n, rerr := process.ReadUint(d.root, cpuPath(id, s.file))
		if mhz := float64(n) / s.perMHz; rerr == nil && sensibleMHz(mhz) {
			return mhz, cpuPath(id, s.file), nil
		}
		err = cmp.Or(err, rerr)
	}
	if mhz := modelMHz(d.info.first().x86.model); mhz > 0 {
		return mhz, "the model name", nil
	}
	for _, p := range d.smbios {
		if mhz := float64(p.currentMHz); sensibleMHz(mhz) {
			return mhz, "SMBIOS", nil
		}
	}
	if mhz, file := deviceTreeMHz(d.root); mhz > 0 {
		return mhz, file, nil
	}
	if mhz := d.info.first().x86.mhz; d.m.Arch == "amd64" && sensibleMHz(mhz) {
		return mhz, "cpu MHz in proc/cpuinfo", nil
	}
	return 0, "", cmp.Or(err, errors.New("the kernel claims a frequency that makes no sense"))
}

// sensibleMHz tells frequencies from what firmware writes when it knows none.
func sensibleMHz(mhz float64) bool { return mhz >= 100 && mhz <= 20_000 }

// modelMHz takes the frequency out of a model name such as "… @ 2.80GHz"; 0
// if it has none.
func modelMHz(model string) float64 {
	_, after, ok := strings.Cut(model, "@ ")
	digits, isGHz := strings.CutSuffix(after, "GHz")
	ghz, err := strconv.ParseFloat(digits, 64)
	if !ok || !isGHz || err != nil || !sensibleMHz(ghz*1000) {
		return 0
	}
	return ghz * 1000
}

// deviceTreeMHz reads clock-frequency of the first CPU in the device tree, a
// big-endian number of hertz; 0 if it is not there.
func deviceTreeMHz(root fs.FS) (mhz float64, file string) {
	const dir = "sys/firmware/devicetree/base/cpus"
	file = fmt.Sprintf("%s/cpu@0/clock-frequency", dir)
	b, err := process.ReadFile(root, file)
	if err != nil {
		return 0, ""
	}
	var hz uint64
	switch len(b) {
	case 4:
		hz = uint64(binary.BigEndian.Uint32(b))
	case 8:
		hz = binary.BigEndian.Uint64(b)
	}
	if mhz = float64(hz) / 1e6; !sensibleMHz(mhz) {
		return 0, ""
	}
	return mhz, file
}
