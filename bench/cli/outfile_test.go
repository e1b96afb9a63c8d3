package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"armrepro/proxycheck/process"
)

func TestOutFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "result.json")
	if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := openOut("--save", name, true)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := o.write(func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	if text, _ := os.ReadFile(name); string(text) != "old" {
		t.Errorf("a run that failed has overwritten the file: %q", text)
	}
	text := func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }
	if err := o.write(text); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(name); string(text) != "new" {
		t.Errorf("wrote %q", text)
	}
	if info, err := os.Stat(name); err != nil || info.Mode() != 0o600 {
		t.Errorf("the mode of the file has changed: %v, %v", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d files are left, want 1", len(entries))
	}
	// A link goes on leading where it led; what is no file stays what it is.
	link := filepath.Join(dir, "link")
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	for _, special := range []string{link, os.DevNull} {
		before, _ := os.Lstat(special)
		o, err := openOut("--save", special, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.write(text); err != nil {
			t.Fatal(err)
		}
		if after, err := os.Lstat(special); err != nil || after.Mode() != before.Mode() {
			t.Errorf("%s was %v and is %v, %v", special, before.Mode(), after.Mode(), err)
		}
	}
}

func TestOutFileRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	there, empty := filepath.Join(dir, "there"), filepath.Join(dir, "empty")
	if err := errors.Join(os.WriteFile(there, []byte("old"), 0o600), os.WriteFile(empty, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		replace bool
		hint    string
		ok      bool
	}{
		{"", false, "", true},
		{filepath.Join(dir, "new"), false, "", true},
		{empty, false, "", true},
		{there, true, "", true},
		{there, false, "use another name, or --force to replace it", false},
		{dir, true, "", false},
		{filepath.Join(dir, "no/such/folder"), true, "", false},
	} {
		_, err := openOut("--save", tt.name, tt.replace)
		if (err == nil) != tt.ok || process.Hint(err) != tt.hint || err != nil && !is[*usageError](err) {
			t.Errorf("%q, replace %t: %v, hint %q", tt.name, tt.replace, err, process.Hint(err))
		}
	}
}
