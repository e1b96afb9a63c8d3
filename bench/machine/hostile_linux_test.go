package machine

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"armrepro/proxycheck/process"
)

// hostileFiles are the files that Detect reads whole or in part.
var hostileFiles = []string{
	"proc/cpuinfo", "proc/meminfo", "proc/version", "proc/stat", "proc/self/status", "proc/self/cgroup",
	"proc/self/mountinfo", "proc/self/auxv", "proc/sys/kernel/osrelease", "proc/sys/kernel/arch",
	"etc/os-release", "run/cloud-init/instance-data.json", "sys/firmware/dmi/tables/DMI",
	"sys/class/dmi/id/sys_vendor", "sys/class/dmi/id/product_name", "sys/devices/system/cpu/online",
	"sys/devices/system/cpu/cpu0/regs/identification/midr_el1", "sys/devices/system/node/online",
	"sys/devices/system/cpu/vulnerabilities/spectre_v2", "sys/firmware/devicetree/base/compatible",
}

// countingFS counts how often a file is opened, and the bytes read of all.
type countingFS struct {
	fs.FS
	opened int
	bytes  int64
}

func (c *countingFS) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	if err != nil {
		return nil, err
	}
	c.opened++
	return &countingFile{f, c}, nil
}

func (c *countingFS) Stat(name string) (fs.FileInfo, error)      { return fs.Stat(c.FS, name) }
func (c *countingFS) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(c.FS, name) }

type countingFile struct {
	fs.File
	fs *countingFS
}

func (f *countingFile) Read(b []byte) (int, error) {
	n, err := f.File.Read(b)
	f.fs.bytes += int64(n)
	return n, err
}

// TestDetectHostileTrees fills a tree with what no kernel writes. All has to
// stay unknown, for little work and with a reason.
func TestDetectHostileTrees(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		make func(file string) error
	}{
		{"ten gigabytes each", func(file string) error {
			if err := os.WriteFile(file, nil, 0o644); err != nil {
				return err
			}
			return os.Truncate(file, 10<<30)
		}},
		{"pipes", func(file string) error { return syscall.Mkfifo(file, 0o644) }},
		{"folders", func(file string) error { return os.Mkdir(file, 0o755) }},
		{"endless devices", func(file string) error { return os.Symlink("/dev/zero", file) }},
		{"links in a ring", func(file string) error { return os.Symlink(filepath.Base(file), file) }},
		{"nothing in them", func(file string) error { return os.WriteFile(file, nil, 0o644) }},
		{"a long line", func(file string) error {
			return os.WriteFile(file, []byte(strings.Repeat("processor: 1 ", 100_000)), 0o644)
		}},
		{"noise", func(file string) error {
			return os.WriteFile(file, []byte(strings.Repeat("\x00\xff\x1b[2J%n%s\n:", 1000)), 0o644)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, name := range hostileFiles {
				file := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := tt.make(file); err != nil {
					t.Fatal(err)
				}
			}
			root := &countingFS{FS: os.DirFS(dir)}
			m, evidence := Detect(root, nil)
			// A few small files are read more than once, such as the mounts.
			const mostOpened, mostBytes = 50, 16 << 20
			if root.opened > mostOpened || root.bytes > mostBytes {
				t.Errorf("Detect opened %d files and read %d bytes of them", root.opened, root.bytes)
			}
			if m.CPU.Core != "" || m.CPU.Product != "" || m.Cloud != "" || m.Emulated || m.MemoryBytes != 0 {
				t.Errorf("Detect = %+v", m)
			}
			for _, e := range evidence {
				if e.Why == "" {
					t.Errorf("no reason for %s", e.Field)
				}
				if strings.ContainsAny(e.Value+e.Why, "\x00\x1b\n") {
					t.Errorf("%s: %q is not fit to print", e.Field, e.Value+e.Why)
				}
			}
		})
	}
}

// What only root may read is unknown for that reason to others.
func TestReasonOfPermission(t *testing.T) {
	t.Parallel()
	_, err := readSMBIOS(denied{})
	if got, want := process.Reason(err), smbiosTable+" may not be read by this user"; got != want {
		t.Errorf("reason = %q, want %q", got, want)
	}
}
