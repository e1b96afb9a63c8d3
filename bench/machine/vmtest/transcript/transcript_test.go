package transcript_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"armrepro/bench/machine/vmtest/transcript"
)

var commands = []transcript.Command{
	{Line: "armrepro machine", Stdout: "{\n\n  \"a\": 1\n}\n"},
	{Line: "armrepro run", Stdout: "vm= 0\n", Stderr: "vm$ armrepro\nexit\n", Exit: 3},
	{Line: "armrepro", Exit: -1},
}

// console is what a terminal shows of commands, in the noise of a boot.
func console(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("UEFI firmware\n\x1b[2J\x1b[01;01H[    0.044196] Early cacheinfo failed, ret = -2\n\x1b[2J")
	for _, c := range commands {
		if err := transcript.Write(&b, c); err != nil {
			t.Fatal(err)
		}
	}
	b.WriteString("[   17.170271] reboot: Power down\n")
	return strings.ReplaceAll(b.String(), "\n", "\r\n")
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	got, err := transcript.Parse([]byte(console(t)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(commands, got); diff != "" {
		t.Errorf("-written +read:\n%s", diff)
	}
}

func TestKernelBetweenLines(t *testing.T) {
	t.Parallel()
	noisy := strings.ReplaceAll(console(t), "\nvm", "\n[ 1.0] a message\r\nvm")
	got, err := transcript.Parse([]byte(noisy))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(commands, got); diff != "" {
		t.Errorf("-written +read:\n%s", diff)
	}
}

func TestWriteFailure(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := transcript.WriteFailure(&b, errors.New("mount proc on /proc: no such device")); err != nil {
		t.Fatal(err)
	}
	_, err := transcript.Parse(append([]byte(console(t)), b.Bytes()...))
	if err == nil || err.Error() != "mount proc on /proc: no such device" {
		t.Errorf("error %v", err)
	}
}

func TestBroken(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		console string
		done    int
		want    string
	}{
		"cut off":           {"vm$ a\nvm= 0\nvm$ b\nvm1 {", 1, `read console: it stops within "b"`},
		"no exit code":      {"vm$ a\nvm$ b\nvm= 0\n", 0, `read console: "a" did not end before "b"`},
		"no command":        {"vm1 x\n", 0, `read console: "vm1 x" belongs to no command`},
		"exit without":      {"vm= 0\n", 0, `read console: "vm= 0" belongs to no command`},
		"exit is no number": {"vm$ a\nvm= x\n", 0, `read console: the exit code of "a": strconv.Atoi: parsing "x": invalid syntax`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			done, err := transcript.Parse([]byte(test.console))
			if err == nil || err.Error() != test.want || len(done) != test.done {
				t.Errorf("%d commands and error %v, want %d and %s", len(done), err, test.done, test.want)
			}
		})
	}
}

// FuzzParse checks that what was read survives being written and read again.
func FuzzParse(f *testing.F) {
	f.Add([]byte("vm$ a\nvm1 x\r\nvm2 y\nvm= 3\n"))
	f.Add([]byte("noise\nvm$ a\nvm$ b\n"))
	f.Add([]byte("vm! no\n"))
	f.Add([]byte("vm1 \nvm= "))
	f.Fuzz(func(t *testing.T, b []byte) {
		done, _ := transcript.Parse(b)
		var again bytes.Buffer
		for _, c := range done {
			if err := transcript.Write(&again, c); err != nil {
				t.Fatal(err)
			}
		}
		got, err := transcript.Parse(again.Bytes())
		if bytes.Contains(b, []byte("\r\r")) {
			// Of several carriage returns one goes with each reading.
			return
		}
		if diff := cmp.Diff(done, got); err != nil || diff != "" {
			t.Errorf("error %v, -first +second:\n%s", err, diff)
		}
	})
}
