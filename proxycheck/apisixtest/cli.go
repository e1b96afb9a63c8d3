package apisixtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"armrepro/proxycheck/etcdhttp"
)

// cli is one invocation of the apisix command.
type cli struct {
	home      string
	root      string
	openresty string
	version   string
	faults    Faults
}

// APISIX is the apisix command: the shell script around the Lua program. It
// returns the exit code, which proves as little as the real one's.
func APISIX() int {
	openresty, err := exec.LookPath("openresty")
	if err != nil {
		fmt.Println("ERROR: Please check the version of OpenResty and Lua, OpenResty 1.19+ + LuaJIT is required for Apache APISIX.")
		return 0
	}
	luajit := filepath.Join(filepath.Dir(openresty), "../luajit/bin/luajit")
	script, err := findScript()
	if err == nil {
		fmt.Println(luajit, script, strings.Join(os.Args[1:], " "))
		err = syscall.Exec(luajit, append([]string{luajit, script}, os.Args[1:]...), os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// cliLua is the Lua program, in the folder of an install.
const cliLua = "./apisix/cli/apisix.lua"

// findScript chooses the APISIX of the working folder over the installed one.
func findScript() (string, error) {
	if info, err := os.Stat(cliLua); err == nil && info.Size() > 0 {
		return cliLua, nil
	}
	real, err := filepath.EvalSymlinks(filepath.Dir(os.Args[0]))
	return filepath.Join(real, "../local/apisix", cliLua), err
}

// runCLI is the Lua program.
func runCLI(script string, args []string) int {
	c := &cli{}
	var err error
	if c.home, err = homeOf(script); err == nil {
		c.openresty, err = exec.LookPath("openresty")
	}
	if err == nil {
		c.root, err = installRoot(c.openresty)
	}
	if err == nil {
		c.faults, err = readFaults(c.root)
	}
	if err == nil {
		c.version, err = readVersion(filepath.Join(filepath.Dir(script), "../.."))
	}
	if err == nil {
		err = c.run(strings.Join(args, " "))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// fixedHome is how an apisix.lua that was changed to have one home says which.
const fixedHome = "-- home: "

// homeOf is the folder that the Lua program writes to: the working folder if it
// is named from there, else the one around it.
func homeOf(script string) (string, error) {
	text, err := os.ReadFile(script)
	if err != nil {
		return "", err
	}
	if home, ok := strings.CutPrefix(strings.TrimSpace(string(text)), fixedHome); ok {
		return home, nil
	}
	if !strings.HasPrefix(script, "./") {
		return filepath.Join(filepath.Dir(script), "../.."), nil
	}
	return os.Getwd() // prefers $PWD, as a shell's pwd does
}

// installRoot is the folder that Install made, from the path of openresty.
func installRoot(openresty string) (string, error) {
	dir := filepath.Dir(openresty)
	if filepath.Base(dir) != "bin" {
		return "", fmt.Errorf("%s is not in a fake install", openresty)
	}
	return filepath.Join(dir, "../../../.."), nil
}

func (c *cli) run(command string) error {
	switch command {
	case "version":
		fmt.Println(c.version)
	case "init":
		return c.init()
	case "init_etcd":
		return c.initEtcd()
	case "start":
		return c.start()
	case "stop", "quit", "reload":
		if command == "reload" {
			if err := c.init(); err != nil {
				return err
			}
		}
		// Its failure isn't passed on.
		if err := signalMaster(c.home, command); err != nil {
			fmt.Fprintln(os.Stderr, "nginx:", err)
		}
	default: // nor is this one
		fmt.Fprintln(os.Stderr, "invalid argument:", command)
	}
	return nil
}

func (c *cli) init() error {
	if c.faults.HangInit {
		hang()
	}
	conf, err := readConfig(c.home)
	if err != nil {
		return err
	}
	path := filepath.Join(c.home, "conf/nginx.conf")
	if err := os.WriteFile(path, []byte(conf.nginxConf(c.home)), 0o644); err != nil {
		return fmt.Errorf("failed to update nginx.conf: failed to open file: %s, error info:%w", path, err)
	}
	return nil
}

func (c *cli) initEtcd() error {
	if c.faults.HangInitEtcd {
		hang()
	}
	conf, err := readConfig(c.home)
	if err != nil || conf.standalone != "" {
		return err
	}
	if isV3(c.version) {
		fmt.Println("trying to initialize the data of etcd")
	}
	client, err := etcdhttp.New(conf.etcd)
	if err != nil {
		return err
	}
	for _, host := range conf.etcd.Endpoints {
		if err := checkEtcd(client, host+"/version", conf.prefix); err != nil {
			return fmt.Errorf("request etcd endpoint '%s/version' error, %w\nall etcd nodes are unavailable", host, err)
		}
	}
	for _, dir := range []string{"routes", "upstreams", "services", "plugins"} {
		pair := map[string][]byte{"key": []byte(conf.prefix + "/" + dir + "/"), "value": []byte("init_dir")}
		if err := client.Call(context.Background(), "/v3/kv/put", pair, nil); err != nil {
			return fmt.Errorf("got malformed key-put message: %q from etcd", err)
		}
	}
	return nil
}

// checkEtcd asks for the version twice, as the real command does.
func checkEtcd(client *etcdhttp.Client, url, prefix string) error {
	var err error
	for retry := 1; retry <= 2; retry++ {
		if _, err = client.Check(context.Background(), prefix); err == nil {
			return nil
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			err = errors.New("connection refused")
		}
		fmt.Printf("Warning! Request etcd endpoint '%s' error, %v, retry time=%d\n", url, err, retry)
	}
	return err
}

// start starts a daemon. It believes any live process that nginx.pid names, and
// reports no failure when the daemon has given up.
func (c *cli) start() error {
	if pid := masterPid(c.home); pid > 0 && syscall.Kill(pid, 0) == nil {
		fmt.Println("the old APISIX is still running, the new one will not start")
		return nil
	}
	if err := c.init(); err != nil {
		return err
	}
	if err := c.initEtcd(); err != nil {
		return err
	}
	cmd := exec.Command(c.openresty, "-p", c.home, "-c", filepath.Join(c.home, "conf/nginx.conf"))
	cmd.Dir = c.home
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	// A daemon's start is over once it listens or has given up.
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	for masterPid(c.home) != cmd.Process.Pid {
		select {
		case <-ended:
			return nil
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// masterPid is what logs/nginx.pid says, or 0.
func masterPid(home string) int {
	file, err := os.ReadFile(filepath.Join(home, "logs/nginx.pid"))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(file)))
	return pid
}

// signalMaster is openresty -s.
func signalMaster(home, name string) error {
	pid := masterPid(home)
	if pid == 0 {
		return fmt.Errorf("[error] open() %q failed (2: No such file or directory)", filepath.Join(home, "logs/nginx.pid"))
	}
	sig := map[string]syscall.Signal{"stop": syscall.SIGTERM, "quit": syscall.SIGQUIT, "reload": syscall.SIGHUP}[name]
	if err := syscall.Kill(pid, sig); err != nil {
		return fmt.Errorf("[alert] kill(%d, %d) failed (%w)", pid, sig, err)
	}
	return nil
}
