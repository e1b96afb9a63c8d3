package machine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
	open := slices.DeleteFunc(slices.Sorted(maps.Keys(m.Mitigations)), func(name string) bool {
		// Some say on what first: KVM: Vulnerable.
		state := m.Mitigations[name]
		return !strings.Contains(state, "Vulnerable") && !strings.Contains(state, "No mitigations")
	})
	text := fmt.Sprintf("%d of %d", len(m.Mitigations)-len(open), len(m.Mitigations))
	if len(open) > 0 {
		text += "; unmitigated: " + strings.Join(open, " ")
	}
	return text
}

// flawName matches the names of the kernel's files.
var flawName = regexp.MustCompile(`^[a-z0-9_]{1,40}$`)

// mitigations reads what the kernel does about the CPU's flaws, which costs a
// gateway up to a fifth of its speed.
func (d *detector) mitigations() (states map[string]string, why string, err error) {
	const dir, most, mostUnread = process.CPUDir + "/vulnerabilities", 256, 3
	entries, err := fs.ReadDir(d.root, dir)
	if err = cmp.Or(d.hosts, err); err != nil {
		return nil, "", err
	}
	states = map[string]string{}
	var unread []string
	unaffected := 0
	for _, e := range entries[:min(len(entries), most)] {
		state, err := readFlaw(d.root, dir, e.Name())
		switch {
		case err != nil && len(unread) >= mostUnread:
		case err != nil:
			unread = append(unread, process.Reason(err))
		case state == "Not affected":
			unaffected++
		default:
			states[e.Name()] = state
		}
	}
	if len(states)+unaffected == 0 {
		return nil, "", errors.New(cmp.Or(strings.Join(unread, "; "), dir+" is empty"))
	}
	why = fmt.Sprintf("%s; of %d flaws there this CPU does not have %d", dir, len(entries), unaffected)
	return states, strings.Join(append([]string{why}, unread...), "; "), nil
}

// readFlaw reads what the kernel does about one flaw.
func readFlaw(root fs.FS, dir, name string) (string, error) {
	const maxState = 512
	file := path.Join(dir, name)
	line, err := process.ReadLine(root, file)
	switch {
	case len(line) > maxState:
		err = &fs.PathError{Op: "read", Path: file, Err: process.Defect("larger than the kernel writes it")}
	case err == nil && (!flawName.MatchString(name) || identifying.MatchString(line)):
		err = fmt.Errorf("a file in %s has another form than the kernel's", dir)
	}
	return line, err
}
