package apisixtest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What the processes of a running fake are told beside their role.
const (
	homeEnv = "ARMREPRO_FAKE_APISIX_HOME"
	rootEnv = "ARMREPRO_FAKE_APISIX_ROOT"
)

// OpenResty is the openresty command: it prints its version, or becomes a
// master. It returns the exit code.
func OpenResty() int {
	if err := runOpenResty(); err != nil {
		fmt.Fprintln(os.Stderr, "nginx: [alert]", err)
		return 1
	}
	return 0
}

func runOpenResty() error {
	fs := flag.NewFlagSet("openresty", flag.ContinueOnError)
	showVersion := fs.Bool("V", false, "")
	home, conf := fs.String("p", "", ""), fs.String("c", "", "")
	fs.String("g", "", "")
	if err := fs.Parse(os.Args[1:]); err != nil {
		return err
	}
	self, err := exec.LookPath(os.Args[0])
	if err == nil {
		self, err = filepath.Abs(self)
	}
	if err != nil {
		return err
	}
	root, err := installRoot(self)
	if err != nil {
		return err
	}
	if *showVersion {
		version, err := os.ReadFile(filepath.Join(root, openRestyFile))
		fmt.Fprintf(os.Stderr, "nginx version: openresty/%s\nconfigure arguments: --prefix=%s/nginx --with-http_stub_status_module --add-module=../ngx_lua-0.10.26 --add-module=../apisix-nginx-module-1.19.8\n", version, filepath.Dir(filepath.Dir(self)))
		return err
	}
	title := fmt.Sprintf("nginx: master process %s -p %s -c %s", self, *home, *conf)
	if path := filepath.Join(*home, *conf); isEmptyProxy(path) {
		env := append(os.Environ(), roleEnv+"=emptyproxy", homeEnv+"="+path)
		return syscall.Exec("/proc/self/exe", []string{title}, env)
	}
	env := append(os.Environ(), roleEnv+"=master", homeEnv+"="+*home, rootEnv+"="+root)
	return syscall.Exec("/proc/self/exe", []string{title}, env)
}

// master is the state of a running master process.
type master struct {
	home    string
	conf    *config
	faults  Faults
	workers int
	// sockets are the listening sockets by address: one for all workers, or
	// one each with reuseport.
	sockets map[string][]*os.File
	events  net.Listener
	ended   chan *exec.Cmd
	living  map[*exec.Cmd]*child
}

// child is a process of a master. One that was told to quit isn't replaced.
type child struct {
	title    string
	index    int // of a worker
	quitting bool
}

// workerTitle is how nginx titles a worker.
const workerTitle = "nginx: worker process"

// runMaster is a master process from its first line to its exit code.
func runMaster() int {
	m := &master{
		home: os.Getenv(homeEnv), sockets: map[string][]*os.File{},
		ended: make(chan *exec.Cmd), living: map[*exec.Cmd]*child{},
	}
	if err := m.prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "nginx:", err)
		return 1
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP)
	m.spawnAll()
	for {
		select {
		case sig := <-signals:
			if sig == syscall.SIGHUP {
				m.reload()
				continue
			}
			m.stop(sig)
			return 0
		case cmd := <-m.ended:
			c := m.living[cmd]
			delete(m.living, cmd)
			switch {
			case c.quitting:
			case cmd.ProcessState.ExitCode() == 2:
				logTo(m.home, "alert", "%s %d exited with fatal code 2 and cannot be respawned", c.title, cmd.Process.Pid)
			case c.title == workerTitle:
				logTo(m.home, "alert", "worker process %d exited on signal 11", cmd.Process.Pid)
				m.spawn("worker", c.title, c.index)
			}
		}
	}
}

// reload starts new processes with the configuration as it is now, and has the
// old ones finish what they do.
func (m *master) reload() {
	before := maps.Clone(m.living)
	listens, err := m.readNginxConf()
	if err == nil {
		m.conf, err = readConfig(m.home)
	}
	if err == nil {
		err = m.bindAll(listens)
	}
	if err != nil {
		logTo(m.home, "emerg", "%v", err)
		return
	}
	m.spawnAll()
	m.end(before, syscall.SIGQUIT)
}

// end tells children to end: workers by sig, the others at once.
func (m *master) end(children map[*exec.Cmd]*child, sig os.Signal) {
	for cmd, c := range children {
		c.quitting = true
		if c.title == workerTitle {
			_ = cmd.Process.Signal(sig)
		} else {
			_ = cmd.Process.Kill()
		}
	}
}

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
		logTo(m.home, "error", "init_by_lua error: %s/apisix/init.lua:23: module 'resty.radixtree' not found:\n\tno field package.preload['resty.radixtree']\n\tno file '%s/deps/share/lua/5.1/resty/radixtree.lua'", m.home, m.home)
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
	listenLine  = regexp.MustCompile(`(?m)^\s*listen ([0-9.]+:[0-9]+)(.*);`)
	workersLine = regexp.MustCompile(`(?m)^worker_processes (\w+);`)
)

// readNginxConf reads what init wrote, which is all that nginx itself reads.
func (m *master) readNginxConf() (listens []listen, err error) {
	file, err := os.ReadFile(filepath.Join(m.home, "conf/nginx.conf"))
	if err != nil {
		return nil, err
	}
	for _, l := range listenLine.FindAllSubmatch(file, -1) {
		listens = append(listens, listen{string(l[1]), bytes.Contains(l[2], []byte("reuseport"))})
	}
	if m.workers, err = workersOf(file); err != nil {
		return nil, err
	}
	if m.faults.Workers > 0 {
		m.workers = m.faults.Workers
	}
	return listens, nil
}

// workersOf is the number of workers that a nginx.conf asks for.
func workersOf(conf []byte) (int, error) {
	if w := workersLine.FindSubmatch(conf); w != nil && string(w[1]) != "auto" {
		return strconv.Atoi(string(w[1]))
	}
	return runtime.NumCPU(), nil
}

// bindAll opens the sockets that aren't open, trying five times as nginx does.
func (m *master) bindAll(listens []listen) error {
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

func (m *master) bindOnce(listens []listen) error {
	for _, l := range listens {
		count := 1
		if l.reuseport {
			count = m.workers
		}
		for len(m.sockets[l.address]) < count {
			f, err := l.open()
			if err != nil {
				return fmt.Errorf("[emerg] bind() to %s failed (98: Address already in use)", l.address)
			}
			m.sockets[l.address] = append(m.sockets[l.address], f)
		}
	}
	if m.events == nil && usesEventsSocket(m.conf.version) {
		path := filepath.Join(m.home, eventsSocket)
		l, err := net.Listen("unix", path)
		if err != nil {
			return fmt.Errorf("[emerg] bind() to unix:%s failed (98: Address already in use)", path)
		}
		m.events = l
	}
	return nil
}

// open opens a socket. With reuseport another instance can share the address
// unnoticed.
func (l listen) open() (*os.File, error) {
	cfg := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		if !l.reuseport {
			return nil
		}
		var err error
		if controlErr := conn.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}); controlErr != nil {
			return controlErr
		}
		return err
	}}
	listener, err := cfg.Listen(context.Background(), "tcp4", l.address)
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	return listener.(*net.TCPListener).File()
}

// spawnAll starts what a master of this version has.
func (m *master) spawnAll() {
	for i := range m.workers {
		m.spawn("worker", workerTitle, i)
	}
	m.spawn("helper", "nginx: privileged agent process", 0)
	if isV3(m.conf.version) {
		m.spawn("helper", "nginx: cache manager process", 0)
	}
}

// spawn starts a child in this process's group, as nginx does.
func (m *master) spawn(role, title string, index int) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{title}
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.Stderr = os.Stderr
	for _, l := range m.conf.listens() {
		sockets := m.sockets[l.address]
		cmd.ExtraFiles = append(cmd.ExtraFiles, sockets[index%len(sockets)])
	}
	if err := cmd.Start(); err != nil {
		logTo(m.home, "alert", "fork() failed: %v", err)
		return
	}
	m.living[cmd] = &child{title: title, index: index}
	go func() {
		_ = cmd.Wait()
		m.ended <- cmd
	}()
}

// stop ends the children, then whatever would be left behind.
func (m *master) stop(sig os.Signal) {
	m.end(m.living, sig)
	for len(m.living) > 0 {
		delete(m.living, <-m.ended)
	}
	time.Sleep(m.faults.StopDelay)
	if m.events != nil {
		m.events.Close()
	}
	os.Remove(filepath.Join(m.home, "logs/nginx.pid"))
}

// logTo writes to logs/error.log as nginx does.
func logTo(home, level, format string, args ...any) {
	f, err := os.OpenFile(filepath.Join(home, "logs/error.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return
	}
	defer f.Close()
	pid := os.Getpid()
	fmt.Fprintf(f, "%s [%s] %d#%d: %s\n", time.Now().UTC().Format("2006/01/02 15:04:05"), level, pid, pid, fmt.Sprintf(format, args...))
}
