package cli

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"armrepro/assets"
	"armrepro/proxycheck/apisixtest"
)

// asArmrepro is the variable that makes the test binary, and every process that
// it starts from itself, the program.
const asArmrepro = "ARMREPRO_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	apisixtest.Main()
	mountAll()
	if os.Getenv(asArmrepro) != "" {
		asProgram()
	}
	if signal.Ignored(syscall.SIGHUP) {
		// Under nohup the programs of the tests would ignore it too; a handler
		// is not inherited.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	// Most of a test is waiting.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"armrepro": asProgram})
}

// asProgram does what main does.
func asProgram() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, Signals()...)
	os.Exit(Main(Program{
		Version: "devel", Args: os.Args[1:],
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}, signals))
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Cmds:                scriptCommands,
		Setup: func(env *testscript.Env) error {
			for _, name := range portNames {
				env.Setenv(name, strconv.Itoa(freePort(t)))
			}
			env.Setenv(asArmrepro, "1")
			dir := env.WorkDir + "/.tmp"
			env.Setenv("TMPDIR", dir)
			const private = 0o700
			return os.MkdirAll(dir, private)
		},
	})
}

// portNames are the variables in which scripts find free ports.
var portNames = []string{"UPSTREAM", "GATEWAY", "ADMIN", "ETCD", "CONTROL", "PROMETHEUS", "TLS"}

var (
	takenMu sync.Mutex
	taken   = map[int]bool{}
)

// freePort finds a port that nothing listens on and that no other test has been
// given. It is below the range from which the kernel takes the ports of
// outgoing connections, or a load run might take it in the meantime.
func freePort(t testing.TB) int {
	t.Helper()
	takenMu.Lock()
	defer takenMu.Unlock()
	for range 1000 {
		port := 10000 + rand.IntN(20000)
		if taken[port] {
			continue
		}
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		ln.Close()
		taken[port] = true
		return port
	}
	t.Fatal("found no free port")
	return 0
}

// scriptCommands are what the scripts can do beside testscript's own.
var scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"exec-code":   execCode,
	"measured":    measured,
	"empty-dir":   emptyDir,
	"wait-listen": waitListen,
	"valid-json":  validJSON,
}

// execCode runs a command that has to exit with the given code.
func execCode(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	}
	if want := args[0]; strconv.Itoa(code) != want {
		ts.Fatalf("exit code %d, want %s: %v", code, want, err)
	}
}

// measured runs a command that has to measure. Short runs on a machine that
// does other things as well may be invalid, which is exit code 3.
func measured(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[0], args[1:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == exitInvalid {
		return
	}
	ts.Check(err)
}

// emptyDir checks that nothing is left in a folder.
func emptyDir(ts *testscript.TestScript, _ bool, args []string) {
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	for _, e := range entries {
		ts.Fatalf("%s is left in %s", e.Name(), args[0])
	}
}

// waitListen waits until something accepts connections on a port.
func waitListen(ts *testscript.TestScript, _ bool, args []string) {
	deadline := time.Now().Add(2 * time.Minute)
	for {
		conn, err := net.Dial("tcp", "127.0.0.1:"+args[0])
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("wait for port %s: %v", args[0], err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// validJSON checks a saved result against the JSON Schema.
func validJSON(ts *testscript.TestScript, _ bool, args []string) {
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(assets.ResultSchema()))
	ts.Check(err)
	compiler := jsonschema.NewCompiler()
	ts.Check(compiler.AddResource("result.json", schema))
	compiled, err := compiler.Compile("result.json")
	ts.Check(err)
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(ts.ReadFile(args[0])))
	ts.Check(err)
	ts.Check(compiled.Validate(document))
}
