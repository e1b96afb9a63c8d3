package proxycheck

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"armrepro/proxycheck/process"
)

// maxHomeBytes is the longest path of a home. APISIX makes unix sockets in it,
// conf/config_listen.sock and logs/worker_events.sock, and the kernel takes
// 107 bytes for the name of one (unix(7)).
const maxHomeBytes = 83

// home is a folder that APISIX takes for its own. It links to an install's
// code, so all that a run writes, nginx.conf, sockets, logs, lands here and the
// install stays as it is.
type home struct {
	*process.Folder
	dir string
	// worker is the user that a master of root's runs its workers as.
	worker string
}

// newHome makes a home in runDir, or where runDir is empty in the first
// temporary folder that will do.
func newHome(runDir string, in *Install) (*home, error) {
	if err := in.checkFiles(); err != nil {
		return nil, err
	}
	parents, err := process.TempDirs(runDir)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, parent := range parents {
		h, err := newHomeIn(parent, in)
		if err == nil {
			return h, nil
		}
		errs = append(errs, err)
	}
	return nil, process.Hintf("set TMPDIR to a folder with a short path, outside /root, that every user may enter, such as /var/tmp",
		"make a home for APISIX: %w", errs[0])
}

func newHomeIn(parent string, in *Install) (*home, error) {
	if err := checkHomeParent(parent); err != nil {
		return nil, err
	}
	folder, err := process.NewFolder(homeKind, "", parent)
	if err != nil {
		return nil, err
	}
	h := &home{Folder: folder, dir: folder.Path(), worker: cmp.Or(in.OpenResty.user, "nobody")}
	if err := h.fill(in); err != nil {
		return nil, errors.Join(err, h.Remove())
	}
	return h, nil
}

// checkHomeParent refuses folders that APISIX can't live in.
func checkHomeParent(parent string) error {
	if n := len(parent) + len("/") + process.FolderNameBytes(homeKind); n > maxHomeBytes {
		return fmt.Errorf("use %s: a home in it would have a path of %d characters, %d are too many for APISIX's unix sockets", parent, n, maxHomeBytes+1)
	}
	if strings.ContainsFunc(parent, needsQuotes) {
		return fmt.Errorf("use %s: nginx's configuration can't hold a path with such characters", parent)
	}
	if parent == "/root" || strings.HasPrefix(parent, "/root/") {
		return fmt.Errorf("use %s: APISIX refuses to start under /root", parent)
	}
	if err := checkEnterable(parent); err != nil {
		return fmt.Errorf("use %s: %w", parent, err)
	}
	return nil
}

// needsQuotes says whether r means something to nginx's configuration, Lua or
// the shell.
func needsQuotes(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/._-+@~,=", r))
}

// fill makes the folders and lays the links. Workers of root's are another user
// and have to get in.
func (h *home) fill(in *Install) error {
	mode := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o755
	}
	for _, dir := range []string{"", "conf", "logs"} {
		if err := os.Mkdir(h.path(dir), mode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := os.Chmod(h.path(dir), mode); err != nil { // whatever the umask is
			return err
		}
	}
	return h.link(in)
}

// link lays the links into the install, to what it has of these.
func (h *home) link(in *Install) error {
	names := []string{"apisix", "deps", "conf/mime.types", "conf/cert", "conf/debug.yaml"}
	if !in.Version.defaultsInLua() {
		names = append(names, "conf/config-default.yaml")
	}
	for _, name := range names {
		target := in.file(name)
		if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.Symlink(target, h.path(name)); err != nil {
			return err
		}
	}
	return nil
}

// write writes a file that may hold a secret and that the workers read again;
// without config.yaml they answer 500. Nobody else may read it.
func (h *home) write(name string, data []byte) error {
	f, err := os.OpenFile(h.path(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Chmod(0o600), h.giveToWorkers(f), f.Close())
}

// giveToWorkers makes f the workers' where they are another user.
func (h *home) giveToWorkers(f *os.File) error {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup(h.worker)
	if err != nil {
		return fmt.Errorf("find the user of the workers: %w", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return fmt.Errorf("find the user of the workers: %w", err)
	}
	return errors.Join(f.Chmod(0o400), f.Chown(uid, -1))
}

// systemCAs are where distributions keep the authorities that they trust.
var systemCAs = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}

// copyCertificates copies the certificates for etcd to where the workers can
// read them, and returns cfg with the copies' paths. Older releases don't know
// the system's authorities, so they are named.
func (h *home) copyCertificates(cfg Etcd) (Etcd, error) {
	if i := slices.IndexFunc(systemCAs, exists); cfg.CACert == "" && cfg.HTTPS() && i >= 0 {
		cfg.CACert = systemCAs[i]
	}
	for name, path := range map[string]*string{"etcd-ca.pem": &cfg.CACert, "etcd-cert.pem": &cfg.Cert, "etcd-key.pem": &cfg.Key} {
		if *path == "" {
			continue
		}
		pem, err := process.ReadPath(*path)
		if err == nil {
			err = h.write("conf/"+name, pem)
		}
		if err != nil {
			return cfg, fmt.Errorf("copy the certificates for etcd: %w", err)
		}
		*path = h.path("conf/" + name)
	}
	return cfg, nil
}

func (h *home) path(name string) string { return filepath.Join(h.dir, name) }

// errorLog is the end of what APISIX's error log says about errors, at most n
// lines.
func (h *home) errorLog(n int) string {
	f, err := os.Open(h.path("logs/error.log"))
	if err != nil {
		return ""
	}
	defer f.Close()
	const enough = 64 << 10
	_, _ = f.Seek(-enough, io.SeekEnd) // a shorter one is read from its beginning
	b, _ := process.ReadAll(f, enough)
	return lastErrors(string(b), n)
}

// lastErrors picks the last n lines of an nginx error log that are worse than a
// warning, and what follows them, such as a Lua traceback. What is said again
// and again counts once.
func lastErrors(log string, n int) string {
	var picked []string
	seen := map[string]bool{}
	taking := false
	for line := range strings.Lines(log) {
		if m := logLevel.FindStringSubmatch(line); m != nil {
			// The limit on files is lower than APISIX asks for wherever
			// the hard limit is; it does without.
			taking = !slices.Contains([]string{"warn", "notice", "info", "debug"}, m[1]) &&
				!strings.Contains(line, "setrlimit(RLIMIT_NOFILE")
			message := logRequest.ReplaceAllString(line, "")
			taking = taking && !seen[message]
			seen[message] = true
		}
		if taking {
			picked = append(picked, strings.TrimSpace(line))
		}
	}
	return lastLines(strings.Join(picked, "\n"), n)
}

// logLevel is in every line of nginx's that begins an entry.
var logLevel = regexp.MustCompile(`^(?:\d{4}/\d\d/\d\d \d\d:\d\d:\d\d|nginx:) \[(\w+)\]`)

// logRequest is what tells entries about the same error apart: time, process and
// connection, and the request.
var logRequest = regexp.MustCompile(`^.*?\d+#\d+: (?:\*\d+ )?|, client: .*`)

// emptyAccessLog drops what earlier scenarios logged. The log stays on, since
// its cost is part of the published figures, but need not fill the disk; nginx
// appends, so it goes on at the new end.
func (h *home) emptyAccessLog() error {
	err := os.Truncate(h.path("logs/access.log"), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
