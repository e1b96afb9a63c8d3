package cli

import (
	"os"
	"strings"
	"testing"
)

// TestOutputs writes to a reader that has gone, which is silent, and to a full disk,
// which is an error.
func TestOutputs(t *testing.T) {
	t.Parallel()
	reader, gone, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	defer gone.Close()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, command := range []string{
		"--help", "help", "run --help", "--version", "version", "completion bash", "machine --root ../machine/testdata/machines/emag",
		"machine --root ../machine/testdata/machines/emag -o json", "report ../report/testdata/valid.json", "check --gateway builtin --quiet",
	} {
		for _, tt := range []struct {
			out  *os.File
			code int
			says string
		}{
			{gone, exitReaderGone, ""},
			{full, exitFailed, "armrepro: write /dev/stdout: no space left on device\n"},
		} {
			p := prepare(t, nil, strings.Fields(command)...)
			p.cmd.Stdout = tt.out
			p.launch()
			code, said := p.exit(), p.err.String()
			said = strings.Replace(said, "write report: ", "", 1)
			if code != tt.code || said != tt.says {
				t.Errorf("%s: exit code %d, want %d; %q, want %q", command, code, tt.code, said, tt.says)
			}
		}
	}
}
