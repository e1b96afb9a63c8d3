package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"armrepro/bench"
)

var update = flag.Bool("update", false, "write the golden files")

func TestGoldens(t *testing.T) {
	t.Parallel()
	ext := map[string]string{"text": "txt", "markdown": "md", "csv": "csv", "json": "json"}
	for name, fixture := range fixtures {
		for _, format := range Formats() {
			t.Run(name+"/"+format, func(t *testing.T) {
				t.Parallel()
				var out bytes.Buffer
				if err := Write(&out, format, []bench.Result{fixture()}, Options{}); err != nil {
					t.Fatal(err)
				}
				golden(t, name+"."+ext[format], out.Bytes())
			})
		}
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
