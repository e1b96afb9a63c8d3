package transcript_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"armrepro/bench/machine/vmtest/transcript"
)

var commands = []transcript.Command{
	{Line: "armrepro machine", Stdout: "{\n\n  \"a\": 1\n}\n"},
	{Line: "armrepro run", Stdout: "vm$ {\n", Stderr: "vm$ armrepro\nexit\n", Exit: 3},
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

func TestFailure(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := transcript.Write(&b, transcript.Command{Failure: "mount proc on /proc: no such device"}); err != nil {
		t.Fatal(err)
	}
	_, err := transcript.Parse(append([]byte(console(t)), b.Bytes()...))
	if err == nil || err.Error() != "mount proc on /proc: no such device" {
		t.Errorf("error %v", err)
	}
}

func TestBroken(t *testing.T) {
	t.Parallel()
	for console, want := range map[string]string{
		"vm$ {\"Line\":\"a\",\"Exit\":0}\r\nvm$ {\"Line\":\"b": `read console: unexpected end of JSON input in "{\"Line\":\"b"`,
		"vm$ {\"Line\":\"a\"}\nvm$ no\n":                       `read console: invalid character 'o' in literal null (expecting 'u') in "no\n"`,
	} {
		done, err := transcript.Parse([]byte(console))
		if err == nil || err.Error() != want || len(done) != 1 {
			t.Errorf("%d commands and error %v, want 1 and %s", len(done), err, want)
		}
	}
}

// FuzzParse checks that what was read survives being written and read again.
func FuzzParse(f *testing.F) {
	f.Add([]byte("vm$ {\"Line\":\"a\",\"Stdout\":\"x\\r\\n\",\"Exit\":3}\r\n"))
	f.Add([]byte("noise\nvm$ {}\nvm$ b\n"))
	f.Add([]byte("vm$ {\"Failure\":\"no\"}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		done, _ := transcript.Parse(b)
		var again bytes.Buffer
		for _, c := range done {
			if err := transcript.Write(&again, c); err != nil {
				t.Fatal(err)
			}
		}
		got, err := transcript.Parse(again.Bytes())
		if diff := cmp.Diff(done, got); err != nil || diff != "" {
			t.Errorf("error %v, -first +second:\n%s", err, diff)
		}
	})
}
