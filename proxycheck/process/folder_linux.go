package process

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Folder is a folder that has to be taken away again, if not by this process
// then by a later one. Its lock file is locked for as long as this process
// lives, and says what makes the folder provably ours.
type Folder struct {
	dir  string
	lock *os.File
	record
}

// record is what a lock says.
type record struct {
	Magic string `json:"armrepro"`
	// Folder is the folder's own path: a copy or a renamed one is the user's.
	Folder string `json:"folder"`
	// PID and Started are the process that made the folder; PID is 0 once it
	// has given it up.
	PID     int    `json:"pid"`
	Started uint64 `json:"started"`
	// Groups are the process groups that were started in it.
	Groups []int `json:"groups,omitempty"`
	// Note is what else has to be taken away.
	Note string `json:"note,omitempty"`
}

// EtcdData is the kind of folder that holds the embedded etcd's data.
const EtcdData = "etcd"

// UpstreamHome is the kind of folder that an nginx runs in as the upstream.
const UpstreamHome = "upstream"

const (
	lockName     = "lock"
	lockMagic    = "this folder is removed when its process has ended"
	folderPrefix = "armrepro-"
	idBytes      = 4
)

// folderName is what the name of every folder looks like.
var folderName = regexp.MustCompile(`^` + folderPrefix + `[a-z]+-[0-9a-f]{8}$`)

// FolderNameBytes is the length of the name of a folder of this kind.
func FolderNameBytes(kind string) int {
	return len(folderPrefix) + len(kind) + len("-") + 2*idBytes
}

// TempDirs lists where folders of runs are, without links and each once, the
// preferred one first: dir, or where that is empty the temporary folders.
func TempDirs(dir string) ([]string, error) {
	names := []string{dir}
	if dir == "" {
		names = []string{os.TempDir(), "/tmp", "/var/tmp"}
	}
	var dirs []string
	var errs []error
	for _, name := range names {
		real, err := filepath.EvalSymlinks(name)
		if err == nil {
			real, err = filepath.Abs(real)
		}
		switch {
		case err != nil:
			errs = append(errs, err)
		case !slices.Contains(dirs, real):
			dirs = append(dirs, real)
		}
	}
	if len(dirs) == 0 {
		return nil, Hintf("set TMPDIR to a folder that exists", "find a folder for temporary files: %w", errors.Join(errs...))
	}
	return dirs, nil
}

// NewFolder makes a folder for this user alone in the first of parents where
// that is possible. Its name begins with the kind, a word of lower-case letters;
// note is for whoever takes the folder over.
func NewFolder(kind, note string, parents ...string) (*Folder, error) {
	self, _ := readStat(os.DirFS("/"), os.Getpid()) // without it the lock alone tells
	var errs []error
	for _, parent := range parents {
		dir := filepath.Join(parent, folderPrefix+kind+"-"+newID())
		f := &Folder{dir: dir, record: record{
			Magic: lockMagic, Folder: dir, PID: os.Getpid(), Started: self.started, Note: note,
		}}
		err := f.make()
		if err == nil {
			f.StandsFor(f.left())
			return f, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func newID() string {
	b := make([]byte, idBytes)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func (f *Folder) make() error {
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		return err
	}
	// The umask may have taken more than others' rights.
	err := os.Chmod(f.dir, 0o700)
	if err == nil {
		err = f.takeLock()
	}
	if err != nil {
		return errors.Join(err, f.Remove())
	}
	return nil
}

// takeLock locks and writes the lock file before that gets its name, so that
// nobody takes the folder for a leftover in between.
func (f *Folder) takeLock() error {
	name := filepath.Join(f.dir, lockName)
	var err error
	if f.lock, err = os.OpenFile(name+".new", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if locked, err := tryLock(f.lock); err != nil || !locked {
		return errors.Join(fmt.Errorf("lock %s.new", name), err)
	}
	if err := errors.Join(f.lock.Chmod(0o600), f.write()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// tryLock takes the advisory lock on f without waiting. It lives as long as
// this process keeps f open; children don't inherit it.
func tryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// write writes the record in one piece: this process may be killed at any time.
func (f *Folder) write() error {
	text, err := json.Marshal(f.record)
	if err == nil {
		_, err = f.lock.WriteAt(append(text, '\n'), 0)
	}
	return err
}

// Path is the folder's.
func (f *Folder) Path() string { return f.dir }

// Own notes that the folder's processes are p and those that it starts.
func (f *Folder) Own(p *Process) error {
	f.Groups = append(f.Groups, p.Pid())
	return f.write()
}

// Remove removes the folder with all that is in it and then gives up the lock:
// an unlocked folder is taken for a leftover. It may be called twice. The error
// is a *LeftBehind.
func (f *Folder) Remove() error {
	err := f.empty()
	if err == nil {
		err = os.RemoveAll(f.dir)
	}
	if f.lock != nil {
		f.lock.Close()
	}
	if err != nil {
		return f.left().Because(err)
	}
	held.Delete(f)
	return nil
}

func (f *Folder) left() Left {
	return Left{What: "folder " + f.dir, How: CommandLine("rm", "-rf", f.dir)}
}

// held has what each Folder of this process that is not yet removed stands for.
var held sync.Map

// StandsFor says what is left behind if this process ends without removing the
// folder, where that is not the folder itself.
func (f *Folder) StandsFor(left Left) { held.Store(f, left) }

// Held lists what this process would leave behind if it ended now.
func Held() []Left {
	var all []Left
	held.Range(func(_, left any) bool {
		all = append(all, left.(Left))
		return true
	})
	slices.SortFunc(all, func(a, b Left) int { return strings.Compare(a.What, b.What) })
	return all
}

// empty removes all but the lock: without it, what is left of a folder by a
// process that is killed here would be nobody's.
func (f *Folder) empty() error {
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.Name() != lockName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(f.dir, e.Name())))
		}
	}
	return err
}

// Leave gives the folder up and leaves it to the next who takes it over.
func (f *Folder) Leave() error {
	held.Delete(f)
	var err error
	if f.PID == os.Getpid() {
		f.PID = 0
		err = f.write()
	}
	return errors.Join(err, unlock(f.lock))
}

// unlock gives the lock up and closes f. Closing alone is not enough as long as a
// child that is just being started has the file too.
func unlock(f *os.File) error {
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
}

// TakeOver takes over the folders of a kind in parents whose processes have
// ended, and locks them. Folders that aren't provably this program's and this
// user's are let be: the name, the owner and the lock have to be right.
func TakeOver(kind string, parents ...string) []*Folder {
	var taken []*Folder
	for _, parent := range parents {
		entries, _ := os.ReadDir(parent) // nothing of ours is in one that can't be read
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), folderPrefix+kind+"-") {
				continue
			}
			if f := takeOver(filepath.Join(parent, e.Name())); f != nil {
				taken = append(taken, f)
			}
		}
	}
	return taken
}

// takeOver returns nil for a folder that is not ours, or in use.
func takeOver(dir string) *Folder {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || !ownedByUs(info) || !folderName.MatchString(filepath.Base(dir)) {
		return nil
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	f := &Folder{dir: dir, lock: lock}
	if !f.isLeft() {
		_ = unlock(lock)
		return nil
	}
	return f
}

// isLeft says whether the lock is ours and its process has ended.
func (f *Folder) isLeft() bool {
	info, err := f.lock.Stat()
	if err != nil || !info.Mode().IsRegular() || !ownedByUs(info) {
		return false
	}
	if locked, err := tryLock(f.lock); err != nil || !locked {
		return false
	}
	err = json.NewDecoder(f.lock).Decode(&f.record)
	if err != nil || f.Magic != lockMagic || f.Folder != f.dir {
		return false
	}
	maker, err := readStat(os.DirFS("/"), f.PID)
	return f.PID == 0 || err != nil || maker.started != f.Started
}

// ownedByUs says whether the file belongs to the user this process runs as.
func ownedByUs(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// End waits until the folder's processes have ended, and kills those that
// outlast patience. If some don't end even so, the error is a *LeftBehind.
func (f *Folder) End(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience+killTimeout)
	defer cancel()
	kill := time.Now().Add(patience)
	seen := map[int]bool{}
	err := Poll(ctx, endEvery, func() error {
		for _, pid := range f.processes() {
			seen[pid] = true
			if time.Now().After(kill) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		// An ending process loses its folder before its sockets.
		for pid := range seen {
			if !Running(os.DirFS("/"), pid) {
				delete(seen, pid)
			}
		}
		if len(seen) > 0 {
			return fmt.Errorf("%d processes still run in %s", len(seen), f.dir)
		}
		return nil
	})
	if err == nil {
		return nil
	}
	return leftProcesses(err, slices.Sorted(maps.Keys(seen))...)
}

// endEvery is the time between two looks at ending processes.
const endEvery = 20 * time.Millisecond

// processes lists the processes of the folder. Their group is what they were
// started in and can't be another's as long as one of them lives; that they
// work in the folder holds even when they have changed their titles.
func (f *Folder) processes() []int {
	if len(f.Groups) == 0 {
		return nil
	}
	procs, _ := List(os.DirFS("/"))
	var pids []int
	for _, p := range procs {
		if !slices.Contains(f.Groups, p.group) || p.started < f.Started {
			continue
		}
		cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.PID))
		if err == nil && (cwd == f.dir || strings.HasPrefix(cwd, f.dir+"/")) {
			pids = append(pids, p.PID)
		}
	}
	return pids
}
