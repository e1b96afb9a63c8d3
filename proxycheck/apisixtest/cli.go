package apisixtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"armrepro/proxycheck/etcdhttp"
)

const usage = `Usage: apisix [action] <argument>

help:       %s
init:       initialize the local nginx.conf
init_etcd:  initialize the data of etcd
start:      start the apisix server
stop:       stop the apisix server
quit:       stop the apisix server gracefully
restart:    restart the apisix server
reload:     reload the apisix server
test:       test the generated nginx.conf
version:    print the version of apisix

`

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
	if err != nil {
		fmt.Fprintln(os.Stderr, "luajit:", err)
		return 1
	}
	return c.run(args)
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
	if pwd := os.Getenv("PWD"); pwd != "" { // what a shell's pwd prints
		return pwd, nil
	}
	return os.Getwd()
}

// installRoot is the folder that Install made, from the path of openresty.
func installRoot(openresty string) (string, error) {
	dir := filepath.Dir(openresty)
	if filepath.Base(dir) != "bin" {
		return "", fmt.Errorf("%s is not in a fake install", openresty)
	}
	return filepath.Join(dir, "../../../.."), nil
}

func (c *cli) run(args []string) int {
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	switch command {
	case "version":
		fmt.Println(c.version)
		return 0
	case "init":
		return c.init()
	case "init_etcd":
		return c.initEtcd()
	case "start":
		return c.start()
	case "stop", "quit":
		return c.signal(command)
	case "restart":
		return c.restart()
	case "", "help":
	default:
		fmt.Fprintln(os.Stderr, "invalid argument:", command)
	}
	what := "show this message, then exit"
	if isV3(c.version) {
		what = "print the apisix cli help message"
	}
	fmt.Printf(usage, what)
	return 0
}

func (c *cli) init() int {
	if c.faults.HangInit {
		hang()
	}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil && limit.Cur <= 1024 {
		fmt.Printf("Warning! Current maximum number of open file descriptors [%d] is not greater than 1024, please increase user limits by execute 'ulimit -n <new user limits>' , otherwise the performance is low.\n", limit.Cur)
	}
	conf, err := readConfig(c.home)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	path := filepath.Join(c.home, "conf/nginx.conf")
	if err := os.WriteFile(path, []byte(conf.nginxConf(c.home)), 0o644); err != nil {
		fmt.Fprintf(os.Stderr, "failed to update nginx.conf: failed to open file: %s, error info:%v\n", path, err)
		return 1
	}
	return 0
}

func (c *cli) initEtcd() int {
	if c.faults.HangInitEtcd {
		hang()
	}
	conf, err := readConfig(c.home)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if isV3(c.version) {
		fmt.Println("trying to initialize the data of etcd")
	}
	client, err := etcdhttp.New(conf.etcd)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, host := range conf.etcd.Endpoints {
		if err := checkEtcd(client, host+"/version", conf.prefix); err != nil {
			fmt.Fprintf(os.Stderr, "request etcd endpoint '%s/version' error, %v\n", host, err)
			fmt.Fprintln(os.Stderr, "all etcd nodes are unavailable")
			return 1
		}
	}
	for _, dir := range []string{"routes", "upstreams", "services", "plugins"} {
		pair := map[string][]byte{"key": []byte(conf.prefix + "/" + dir + "/"), "value": []byte("init_dir")}
		if err := client.Call(context.Background(), "/v3/kv/put", pair, nil); err != nil {
			fmt.Fprintf(os.Stderr, "got malformed key-put message: %q from etcd\n", err)
			return 1
		}
	}
	return 0
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
// exits with 0 when nothing has come of it.
func (c *cli) start() int {
	if pid := c.pid(); pid > 0 {
		if syscall.Kill(pid, 0) == nil {
			if isV3(c.version) {
				fmt.Println("the old APISIX is still running, the new one will not start")
			} else {
				fmt.Println("APISIX is running...")
			}
			return 0
		}
		fmt.Printf("nginx.pid exists but there's no corresponding process with pid \t%d\t, the file will be overwritten\n", pid)
	}
	if code := c.init(); code != 0 {
		return code
	}
	if code := c.initEtcd(); code != 0 {
		return code
	}
	cmd := c.nginx()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// A daemon's start is over once it listens or has given up.
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	conf, err := readConfig(c.home)
	for err == nil && c.pid() != cmd.Process.Pid {
		select {
		case <-ended:
			return 0
		case <-time.After(10 * time.Millisecond):
		}
	}
	if conn, err := net.DialTimeout("tcp", conf.data, time.Second); err == nil {
		conn.Close()
	}
	return 0
}

func (c *cli) nginx(args ...string) *exec.Cmd {
	args = append([]string{"-p", c.home, "-c", filepath.Join(c.home, "conf/nginx.conf")}, args...)
	cmd := exec.Command(c.openresty, args...)
	cmd.Dir = c.home
	return cmd
}

// pid is what logs/nginx.pid says, or 0.
func (c *cli) pid() int {
	file, err := os.ReadFile(filepath.Join(c.home, "logs/nginx.pid"))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(file)))
	return pid
}

func (c *cli) signal(name string) int {
	cmd := c.nginx("-s", name)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	_ = cmd.Run() // its failure isn't passed on
	return 0
}

// restart takes the running one for still running on 2.x, after stopping it.
func (c *cli) restart() int {
	fmt.Println("configuration test is successful")
	pid := c.pid()
	c.signal("stop")
	if !isV3(c.version) {
		fmt.Println("APISIX is running...")
		return 0
	}
	for pid > 0 && syscall.Kill(pid, 0) == nil {
		time.Sleep(10 * time.Millisecond)
	}
	return c.start()
}
