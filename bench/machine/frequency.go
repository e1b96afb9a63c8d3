package machine

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"runtime"
	"strconv"
	"strings"
	"time"

	"armrepro/proxycheck/process"
)

// findFrequency compares what is claimed with what is measured.
func (d *detector) findFrequency() {
	f := &d.m.CPU.Frequency
	err := d.hosts
	if err == nil {
		f.ClaimedMHz, f.ClaimedBy, err = d.claimedMHz(d.firstCPU())
	}
	d.conclude("cpu.frequency.claimed_mhz", strconv.FormatFloat(f.ClaimedMHz, 'f', 0, 64), f.ClaimedBy, err)
	fact(d, "cpu.frequency.measured_mhz", &f.MeasuredMHz, d.measuredMHz)
}

func (d *detector) measuredMHz() (mhz float64, why string, err error) {
	switch {
	case d.live == nil:
		return 0, "", errors.New("only a running machine can be measured")
	case !d.live.Calibrate:
		return 0, "", errors.New("it was not asked for")
	case d.m.Emulated:
		return 0, "", errors.New("the CPU is emulated")
	}
	return math.Round(MeasureMHz()), "the best of several runs of a chain of additions, each a cycle", nil
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

// The loop runs at most 8 times, and no more once 40 ms have passed: 750,000
// links, in each of which 8 operations wait for each other, take 5 ms at
// 1.2 GHz.
const (
	calibrationRuns  = 8
	calibrationTime  = 40 * time.Millisecond
	calibrationLinks = 750_000
	linkCycles       = 8
)

// MeasureMHz measures the frequency of the core it runs on: it times a chain
// of additions and exclusive ors, each of which needs the one before and takes
// one cycle on every core of the tables. Interruptions can only make a run
// longer, so the shortest of several counts. It takes under 50 ms on a machine
// that is not overloaded.
func MeasureMHz() float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	best := time.Duration(1<<63 - 1)
	begin := time.Now()
	for range calibrationRuns {
		start := time.Now()
		chain(calibrationLinks, 1, 0x9e3779b97f4a7c15)
		best = min(best, time.Since(start))
		if time.Since(begin) > calibrationTime {
			break
		}
	}
	return calibrationLinks * linkCycles / best.Seconds() / 1e6
}

// chain does links times linkCycles operations in a row. An addition and an
// exclusive or cannot be merged, so the compiler leaves the row as it is; and it
// leaves no call out that it cannot see into.
//
//go:noinline
func chain(links int, a, b uint64) uint64 {
	for range links {
		a += b
		a ^= b
		a += b
		a ^= b
		a += b
		a ^= b
		a += b
		a ^= b
	}
	return a
}
