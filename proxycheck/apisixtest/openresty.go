package apisixtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What the processes of a running fake are told beside their role.
const (
	homeEnv = "ARMREPRO_FAKE_APISIX_HOME"
	rootEnv = "ARMREPRO_FAKE_APISIX_ROOT"
)

// OpenResty is the openresty command: it prints its version, signals a running
// master, or becomes one. It returns the exit code.
func OpenResty() int {
	opts := map[string]string{}
	args := os.Args[1:]
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-v", "-V", "-t", "-q":
			opts[args[i]] = "yes"
		case "-p", "-c", "-g", "-s":
			if i+1 < len(args) {
				opts[args[i]] = args[i+1]
				i++
			}
		}
	}
	self, err := exec.LookPath(os.Args[0])
	if err == nil {
		self, err = filepath.Abs(self)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "nginx: [alert]", err)
		return 1
	}
	root, err := installRoot(self)
	if err != nil {
		fmt.Fprintln(os.Stderr, "nginx: [alert]", err)
		return 1
	}
	switch {
	case opts["-v"] != "" || opts["-V"] != "":
		version, err := os.ReadFile(filepath.Join(root, openRestyFile))
		if err != nil {
			fmt.Fprintln(os.Stderr, "nginx: [alert]", err)
			return 1
		}
		fmt.Fprintf(os.Stderr, "nginx version: openresty/%s\nconfigure arguments: --prefix=%s/nginx --with-http_stub_status_module --add-module=../ngx_lua-0.10.26\n", version, filepath.Dir(filepath.Dir(self)))
		return 0
	case opts["-s"] != "":
		return signalMaster(opts["-p"], opts["-s"])
	case opts["-t"] != "":
		return 0
	}
	title := fmt.Sprintf("nginx: master process %s -p %s -c %s", self, opts["-p"], opts["-c"])
	env := append(os.Environ(), roleEnv+"=master", homeEnv+"="+opts["-p"], rootEnv+"="+root)
	err = syscall.Exec("/proc/self/exe", []string{title}, env)
	fmt.Fprintln(os.Stderr, "nginx: [alert]", err)
	return 1
}

// signalMaster is openresty -s.
func signalMaster(home, name string) int {
	path := filepath.Join(home, "logs/nginx.pid")
	file, err := os.ReadFile(path)
	if err != nil {
		fmt.Fprintf(os.Stderr, "nginx: [error] open() %q failed (2: No such file or directory)\n", path)
		return 1
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(file)))
	if err != nil {
		fmt.Fprintf(os.Stderr, "nginx: [error] invalid PID number %q in %q\n", file, path)
		return 1
	}
	sig := map[string]syscall.Signal{"stop": syscall.SIGTERM, "quit": syscall.SIGQUIT, "reload": syscall.SIGHUP}[name]
	if err := syscall.Kill(pid, sig); err != nil {
		fmt.Fprintf(os.Stderr, "nginx: [alert] kill(%d, %d) failed (%v)\n", pid, sig, err)
		return 1
	}
	return 0
}

// master is the state of a running master process.
type master struct {
	home    string
	conf    *config
	faults  Faults
	workers int
	files   []*os.File // the listening sockets that workers inherit
	socket  net.Listener
	ended   chan *exec.Cmd
	living  map[*exec.Cmd]string // by title
}

// runMaster is a master process from its first line to its exit code.
func runMaster() int {
	m := &master{home: os.Getenv(homeEnv), ended: make(chan *exec.Cmd), living: map[*exec.Cmd]string{}}
	if err := m.prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "nginx:", err)
		return 1
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP)
	for range m.workers {
		m.spawn("worker", workerTitle)
	}
	m.spawn("helper", "nginx: privileged agent process")
	if isV3(m.conf.version) {
		m.spawn("helper", "nginx: cache manager process")
	}
	for {
		select {
		case sig := <-signals:
			if sig == syscall.SIGHUP {
				continue
			}
			m.stop()
			return 0
		case cmd := <-m.ended:
			title := m.living[cmd]
			delete(m.living, cmd)
			if cmd.ProcessState.ExitCode() == 2 {
				m.log("alert", "%s %d exited with fatal code 2 and cannot be respawned", title, cmd.Process.Pid)
			} else if title == workerTitle {
				m.log("alert", "worker process %d exited on signal 11", cmd.Process.Pid)
				m.spawn("worker", workerTitle)
			}
		}
	}
}

// workerTitle is how nginx titles a worker.
const workerTitle = "nginx: worker process"

func (m *master) prepare() error {
	var err error
	if m.faults, err = readFaults(os.Getenv(rootEnv)); err != nil {
		return err
	}
	if m.conf, err = readConfig(m.home); err != nil {
		return err
	}
	for _, dir := range []string{"logs", "client_body_temp", "proxy_temp"} {
		if err := os.MkdirAll(filepath.Join(m.home, dir), 0o755); err != nil {
			return err
		}
	}
	if m.faults.MissingModule {
		m.log("error", "init_by_lua error: %s/apisix/init.lua:23: module 'resty.radixtree' not found:\n\tno field package.preload['resty.radixtree']\n\tno file '%s/deps/share/lua/5.1/resty/radixtree.lua'", m.home, m.home)
		return errors.New("[error] init_by_lua error")
	}
	time.Sleep(m.faults.SlowStart)
	listens, err := m.readNginxConf()
	if err != nil {
		return err
	}
	if err := m.bindAll(listens); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(m.home, "logs/nginx.pid"), fmt.Appendln(nil, os.Getpid()), 0o644)
}

var (
	listenLine  = regexp.MustCompile(`(?m)^\s*listen ([0-9.]+:[0-9]+)`)
	workersLine = regexp.MustCompile(`(?m)^worker_processes (\w+);`)
)

// readNginxConf reads what init wrote, which is all that nginx itself reads.
func (m *master) readNginxConf() (listens []string, err error) {
	file, err := os.ReadFile(filepath.Join(m.home, "conf/nginx.conf"))
	if err != nil {
		return nil, err
	}
	for _, l := range listenLine.FindAllSubmatch(file, -1) {
		listens = append(listens, string(l[1]))
	}
	m.workers = runtime.NumCPU()
	if w := workersLine.FindSubmatch(file); w != nil && string(w[1]) != "auto" {
		if m.workers, err = strconv.Atoi(string(w[1])); err != nil {
			return nil, err
		}
	}
	if m.faults.Workers > 0 {
		m.workers = m.faults.Workers
	}
	return listens, nil
}

// bindAll opens the sockets, trying five times as nginx does. All of TCP are
// opened with SO_REUSEPORT, which lets another instance share them unnoticed.
func (m *master) bindAll(listens []string) error {
	for attempt := 1; ; attempt++ {
		err := m.bindOnce(listens)
		if err == nil {
			return nil
		}
		fmt.Fprintln(os.Stderr, "nginx:", err)
		if attempt == 5 {
			return errors.New("[emerg] still could not bind()")
		}
		time.Sleep(m.faults.BindWait)
	}
}

func (m *master) bindOnce(listens []string) error {
	for _, f := range m.files {
		f.Close()
	}
	m.files = nil
	for _, addr := range listens {
		f, err := listenReuse(addr)
		if err != nil {
			return fmt.Errorf("[emerg] bind() to %s failed (98: Address already in use)", addr)
		}
		m.files = append(m.files, f)
	}
	if usesEventsSocket(m.conf.version) {
		path := filepath.Join(m.home, eventsSocket)
		l, err := net.Listen("unix", path)
		if err != nil {
			return fmt.Errorf("[emerg] bind() to unix:%s failed (98: Address already in use)", path)
		}
		m.socket = l
	}
	return nil
}

func listenReuse(addr string) (*os.File, error) {
	a, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	sa := &unix.SockaddrInet4{Port: a.Port}
	copy(sa.Addr[:], a.IP.To4())
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1),
	)
	if err == nil {
		err = unix.Bind(fd, sa)
	}
	if err == nil {
		err = unix.Listen(fd, 511)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), addr), nil
}

// spawn starts a child in this process's group, as nginx does.
func (m *master) spawn(role, title string) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{title}
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = m.files
	if err := cmd.Start(); err != nil {
		m.log("alert", "fork() failed: %v", err)
		return
	}
	m.living[cmd] = title
	go func() {
		_ = cmd.Wait()
		m.ended <- cmd
	}()
}

// stop ends the children, then whatever would be left behind.
func (m *master) stop() {
	for cmd := range m.living {
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}
	for len(m.living) > 0 {
		delete(m.living, <-m.ended)
	}
	time.Sleep(m.faults.StopDelay)
	if m.socket != nil {
		m.socket.Close()
	}
	os.Remove(filepath.Join(m.home, "logs/nginx.pid"))
}

// log writes to logs/error.log as nginx does.
func (m *master) log(level, format string, args ...any) {
	logTo(m.home, level, format, args...)
}

func logTo(home, level, format string, args ...any) {
	f, err := os.OpenFile(filepath.Join(home, "logs/error.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return
	}
	defer f.Close()
	pid := os.Getpid()
	fmt.Fprintf(f, "%s [%s] %d#%d: %s\n", time.Now().UTC().Format("2006/01/02 15:04:05"), level, pid, pid, fmt.Sprintf(format, args...))
}
