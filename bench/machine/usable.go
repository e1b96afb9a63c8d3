package machine

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"armrepro/proxycheck/process"
)

func (d *detector) coresOnline() (count int, why string, err error) {
	listed := len(d.processors)
	why = process.CPUDir + "/online is " + process.FormatCPUList(d.online)
	switch {
	case d.onlineErr == nil && listed > 0 && listed != len(d.online):
		return len(d.online), fmt.Sprintf("%s; proc/cpuinfo lists %d", why, listed), nil
	case d.onlineErr == nil:
		return len(d.online), why, nil
	case listed > 0:
		return listed, "proc/cpuinfo lists so many; " + process.Reason(d.onlineErr), nil
	}
	return 0, "", d.onlineErr
}

// firstCPU is the online CPU that stands for all where they are alike.
func (d *detector) firstCPU() int {
	switch {
	case len(d.cores.kinds) > 0 && len(d.cores.kinds[0].cpus) > 0:
		return d.cores.kinds[0].cpus[0]
	case len(d.online) > 0:
		return d.online[0]
	}
	return 0
}

// countOf counts the CPUs or nodes that a file lists.
func (d *detector) countOf(file string) func() (count int, source string, err error) {
	return func() (int, string, error) {
		list, err := process.ReadCPUList(d.root, file)
		return len(list), file, err
	}
}

// findUsableCores looks for what keeps this process from using all cores.
func (d *detector) findUsableCores() {
	m := &d.m
	m.UsableCores = float64(m.Cores)
	allowed, err := process.AllowedCPUs(d.root)
	if n := float64(len(allowed)); n > 0 && (n < m.UsableCores || m.Cores == 0) {
		m.UsableCores = n
	}
	if err == nil && len(allowed) == 0 {
		err = errors.New("Cpus_allowed_list in proc/self/status has no CPU that is online")
	}
	m.Allowed = process.FormatCPUList(allowed)
	d.conclude("cpus_allowed", m.Allowed, "Cpus_allowed_list in proc/self/status", err)

	quota, file, err := d.quota()
	text := strconv.FormatFloat(quota, 'f', -1, 64)
	if math.IsInf(quota, 1) {
		text, file = none, "no control group above this process has one"
	} else if err == nil {
		m.QuotaCores, m.UsableCores = quota, min(m.UsableCores, quota)
	}
	d.conclude("quota_cores", text, file, err)
}

func (d *detector) quota() (cores float64, source string, err error) {
	group, err := GroupOf(d.root, "self", "cpu")
	if err != nil {
		return 0, "", err
	}
	return group.quota(d.root)
}
