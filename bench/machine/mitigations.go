package machine

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"armrepro/proxycheck/process"
)

// Mitigated counts the flaws of the CPU that the kernel does something about,
// and names the others: 3 of 4; unmitigated: spectre_v2. It is empty if unknown.
func (m Machine) Mitigated() string {
	if m.Mitigations == nil {
		return ""
	}
	var open []string
	for name, state := range m.Mitigations {
		// Some say on what first: KVM: Vulnerable.
		if strings.Contains(state, "Vulnerable") || strings.Contains(state, "No mitigations") {
			open = append(open, name)
		}
	}
	slices.Sort(open)
	text := fmt.Sprintf("%d of %d", len(m.Mitigations)-len(open), len(m.Mitigations))
	if len(open) > 0 {
		text += "; unmitigated: " + strings.Join(open, " ")
	}
	return text
}

// flawName matches the names of the kernel's files.
var flawName = regexp.MustCompile(`^[a-z0-9_]{1,40}$`)

// findMitigations reads what the kernel does about the CPU's flaws, which
// costs a gateway up to a fifth of its speed.
func (d *detector) findMitigations() {
	const field, dir = "mitigations", cpuDir + "/vulnerabilities"
	const most, mostUnread, maxState = 256, 3, 512
	entries, err := fs.ReadDir(d.root, dir)
	if d.hostsFacts() {
		err = errHosts
	}
	if err != nil {
		d.because(field, "", "%s", process.Reason(err))
		return
	}
	states := map[string]string{}
	var unread []string
	unaffected := 0
	for _, e := range entries[:min(len(entries), most)] {
		name := path.Join(dir, e.Name())
		line, err := process.ReadLine(d.root, name)
		if len(line) > maxState {
			err = &fs.PathError{Op: "read", Path: name, Err: process.Defect("larger than the kernel writes it")}
		}
		if err == nil && (!flawName.MatchString(e.Name()) || identifying.MatchString(line)) {
			err = fmt.Errorf("a file in %s has another form than the kernel's", dir)
		}
		switch {
		case err != nil && len(unread) >= mostUnread:
		case err != nil:
			unread = append(unread, process.Reason(err))
		case line == "Not affected":
			unaffected++
		default:
			states[e.Name()] = line
		}
	}
	if len(states)+unaffected == 0 {
		d.because(field, "", "%s", cmp.Or(strings.Join(unread, "; "), dir+" is empty"))
		return
	}
	d.m.Mitigations = states
	why := fmt.Sprintf("%s; of %d flaws there this CPU does not have %d", dir, len(entries), unaffected)
	d.because(field, d.m.Mitigated(), "%s", strings.Join(append([]string{why}, unread...), "; "))
}
