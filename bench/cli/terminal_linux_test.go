package cli

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/sys/unix"
)

// TestTerminalWidth prints to a terminal of 40 columns.
func TestTerminalWidth(t *testing.T) {
	t.Parallel()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	const width = 40
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: width}); err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := prepare(t, nil, "machine", "--explain")
	p.cmd.Stdout = terminal
	p.launch()
	terminal.Close()
	var out bytes.Buffer
	_, _ = out.ReadFrom(master) // an error is how a terminal says that nobody writes to it any more
	if code := p.exit(); code != exitOK {
		t.Errorf("exit code %d: %s", code, p.err.String())
	}
	if n := text.LongestLineLen(out.String()); n > width || !bytes.Contains(out.Bytes(), []byte("\ncpu.core: ")) {
		t.Errorf("the longest line has %d columns:\n%s", n, out.String())
	}
}
