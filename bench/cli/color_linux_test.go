package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestColor prints on a terminal that shows colors, on one that does not, and for
// a user who wants none.
func TestColor(t *testing.T) {
	t.Parallel()
	for _, command := range [][]string{
		{"report", savedResult(t, "valid.json")},
		// Its log: it creates a key before it looks for etcd.
		{"gateway", "--etcd", fmt.Sprintf("http://127.0.0.1:%d", freePort(t))},
	} {
		for _, tt := range []struct {
			term, noColor string
			colored       bool
		}{{"xterm", "", true}, {"dumb", "", false}, {"xterm", "1", false}} {
			p := prepare(t, []string{"TERM=" + tt.term, "NO_COLOR=" + tt.noColor}, command...)
			ours, theirs := openTerminal(t)
			p.cmd.Stdout, p.cmd.Stderr = theirs, theirs
			p.launch()
			theirs.Close()
			// Reading ends in an error when the program has closed its end.
			text, _ := io.ReadAll(ours)
			p.exit()
			if len(text) == 0 || strings.Contains(string(text), "\x1b[") != tt.colored {
				t.Errorf("%s with TERM=%s NO_COLOR=%s prints %q", command[0], tt.term, tt.noColor, text)
			}
		}
	}
}

// openTerminal returns both ends of a pseudo-terminal.
func openTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	number, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}
