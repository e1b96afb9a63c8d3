package process_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"armrepro/proxycheck/process"
)

// parentEnv is where the role "owner" makes its folder.
const parentEnv = "ARMREPRO_TEST_PARENT"

// own makes a folder, whatever the umask is, and starts a process in it that
// outlives this one.
func own() {
	syscall.Umask(0o777)
	f, err := process.NewFolder("gateway", "a note", os.Getenv(parentEnv))
	if err != nil {
		panic(err)
	}
	p, err := process.Start(process.Config{
		Path: "/proc/self/exe", Env: append(os.Environ(), roleEnv+"=stubborn"), Dir: f.Path(),
		Stdout: os.Stdout, DeathSignal: syscall.SIGTERM,
	})
	if err != nil {
		panic(err)
	}
	if err := f.Own(p); err != nil {
		panic(err)
	}
}

// tempDir is a folder's parent, without links in its path.
func tempDir(t *testing.T) string {
	t.Helper()
	dirs, err := process.TempDirs(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dirs[0]
}

func takeOver(t *testing.T, parent string) []*process.Folder {
	t.Helper()
	return process.TakeOver("gateway", parent)
}

// What a killed process has left is taken over with the processes that it
// started in it, and with no other that stands there.
func TestTakeOverFromKilled(t *testing.T) {
	t.Parallel()
	parent := tempDir(t)
	r, w := io.Pipe()
	owner, err := process.Start(process.Config{
		Path: "/proc/self/exe", Env: append(os.Environ(), roleEnv+"=owner", parentEnv+"="+parent), Stdout: w,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { owner.Stop(syscall.SIGKILL, 10*time.Second) })
	inside := readPid(t, r)
	go io.Copy(io.Discard, r)
	t.Cleanup(func() { syscall.Kill(inside, syscall.SIGKILL) })
	dirs, _ := filepath.Glob(filepath.Join(parent, "*"))
	if len(dirs) != 1 {
		t.Fatalf("folders: %v", dirs)
	}
	for name, want := range map[string]os.FileMode{"": os.ModeDir | 0o700, "lock": 0o600} {
		if info, err := os.Stat(filepath.Join(dirs[0], name)); err != nil || info.Mode() != want {
			t.Errorf("%q has mode %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
	if taken := takeOver(t, parent); len(taken) > 0 {
		t.Fatalf("the folder of a living process was taken over: %v", taken)
	}

	// The process waits for no one in its group, so it is killed alone.
	if err := syscall.Kill(owner.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-owner.Done()
	visitor, err := process.Start(process.Config{Path: "/proc/self/exe", Env: append(os.Environ(), roleEnv+"=sleep"), Dir: dirs[0]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { visitor.Stop(syscall.SIGKILL, 10*time.Second) })
	taken := takeOver(t, parent)
	if len(taken) != 1 || taken[0].Path() != dirs[0] || taken[0].Note != "a note" {
		t.Fatalf("taken over: %v", taken)
	}
	if again := takeOver(t, parent); len(again) > 0 {
		t.Errorf("taken over twice: %v", again)
	}
	if err := taken[0].End(t.Context(), 0); err != nil {
		t.Error(err)
	}
	waitGone(t, inside)
	if !process.Running(os.DirFS("/"), visitor.Pid()) {
		t.Error("a process of somebody else was ended")
	}
	for range 2 {
		if err := taken[0].Remove(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(parent, "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// copyLock makes a folder with another's lock.
func copyLock(t *testing.T, from, to string) {
	t.Helper()
	lock, err := os.ReadFile(filepath.Join(from, "lock"))
	if err == nil {
		err = os.Mkdir(to, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(to, "lock"), lock, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What only looks like a folder of ours is let be.
func TestTakeOverNothingElse(t *testing.T) {
	t.Parallel()
	genuine := func(t *testing.T, parent string) string {
		f, err := process.NewFolder("gateway", "", parent)
		if err == nil {
			err = f.Leave()
		}
		if err != nil {
			t.Fatal(err)
		}
		return f.Path()
	}
	const name = "armrepro-gateway-0123abcd"
	for _, tt := range []struct {
		name string
		make func(t *testing.T, parent, elsewhere string) error
		want int
	}{
		{"ours", func(t *testing.T, parent, _ string) error { genuine(t, parent); return nil }, 1},
		{"without a lock", func(_ *testing.T, parent, _ string) error { return os.Mkdir(filepath.Join(parent, name), 0o700) }, 0},
		{"an empty lock", func(_ *testing.T, parent, _ string) error {
			return errors.Join(os.Mkdir(filepath.Join(parent, name), 0o700), os.WriteFile(filepath.Join(parent, name, "lock"), nil, 0o600))
		}, 0},
		{"another's lock", func(_ *testing.T, parent, _ string) error {
			return errors.Join(os.Mkdir(filepath.Join(parent, name), 0o700), os.WriteFile(filepath.Join(parent, name, "lock"), []byte(`{"pid":1,"folder":"`+filepath.Join(parent, name)+`"}`), 0o600))
		}, 0},
		{"a folder for a lock", func(_ *testing.T, parent, _ string) error {
			return os.MkdirAll(filepath.Join(parent, name, "lock"), 0o700)
		}, 0},
		{"a pipe for a lock", func(_ *testing.T, parent, _ string) error {
			return errors.Join(os.Mkdir(filepath.Join(parent, name), 0o700), syscall.Mkfifo(filepath.Join(parent, name, "lock"), 0o600))
		}, 0},
		{"a copy", func(t *testing.T, parent, elsewhere string) error {
			copyLock(t, genuine(t, elsewhere), filepath.Join(parent, name))
			return nil
		}, 0},
		{"renamed", func(t *testing.T, parent, _ string) error {
			return os.Rename(genuine(t, parent), filepath.Join(parent, name))
		}, 0},
		{"another name", func(t *testing.T, parent, _ string) error {
			return os.Rename(genuine(t, parent), filepath.Join(parent, "armrepro-gateway-src"))
		}, 0},
		{"a link", func(t *testing.T, parent, elsewhere string) error {
			return os.Symlink(genuine(t, elsewhere), filepath.Join(parent, name))
		}, 0},
		{"a link for a lock", func(t *testing.T, parent, elsewhere string) error {
			return errors.Join(os.Mkdir(filepath.Join(parent, name), 0o700), os.Symlink(filepath.Join(genuine(t, elsewhere), "lock"), filepath.Join(parent, name, "lock")))
		}, 0},
		{"another user's", func(t *testing.T, parent, _ string) error {
			if os.Geteuid() != 0 {
				t.Skip("only root can make one")
			}
			return os.Chown(genuine(t, parent), 1, 1)
		}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			parent := tempDir(t)
			if err := tt.make(t, parent, tempDir(t)); err != nil {
				t.Fatal(err)
			}
			if taken := takeOver(t, parent); len(taken) != tt.want {
				t.Errorf("taken over: %v, want %d", taken, tt.want)
			}
			if left, err := os.ReadDir(parent); err != nil || len(left) != 1 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// An owner that lives is believed even where its lock was lost.
func TestTakeOverFromLiving(t *testing.T) {
	t.Parallel()
	parent := tempDir(t)
	f, err := process.NewFolder("gateway", "", parent)
	if err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(f.Path(), "lock")
	text, err := os.ReadFile(lock)
	if err == nil {
		err = os.Remove(lock)
	}
	if err == nil {
		err = os.WriteFile(lock, text, 0o600) // without flock
	}
	if err != nil {
		t.Fatal(err)
	}
	if taken := takeOver(t, parent); len(taken) > 0 {
		t.Errorf("taken over: %v", taken)
	}
}

func TestNewFolderFails(t *testing.T) {
	t.Parallel()
	parent := tempDir(t)
	f, err := process.NewFolder("etcd", "", filepath.Join(parent, "none"), parent)
	if err != nil || filepath.Dir(f.Path()) != parent || len(filepath.Base(f.Path())) != process.FolderNameBytes("etcd") {
		t.Errorf("the second parent: %v, %v", f, err)
	}
	if _, err := process.NewFolder("etcd", "", filepath.Join(parent, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no parent: %v", err)
	}
}

func TestAllLeft(t *testing.T) {
	t.Parallel()
	one := &process.LeftBehind{Left: []process.Left{{What: "a", How: "rm a"}}, Err: io.EOF}
	two := &process.LeftBehind{Left: []process.Left{{What: "b", How: "rm b"}, {What: "c", How: "rm c"}}, Err: io.EOF}
	err := fmt.Errorf("stop: %w", errors.Join(one, io.ErrClosedPipe, fmt.Errorf("deep: %w", two)))
	if diff := cmp.Diff(append(one.Left, two.Left...), process.AllLeft(err)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "remove b, c: EOF") {
		t.Errorf("%v", err)
	}
	if left := process.AllLeft(io.EOF); left != nil {
		t.Errorf("nothing left: %v", left)
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	got := process.CommandLine("rm", "-rf", "/tmp/a b/$x", "it's", "")
	if want := `rm -rf '/tmp/a b/$x' 'it'\''s' ''`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
