package load

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"

	"armrepro/upstream"
)

// childEnv turns this program into a server for the test that started it, so
// that the two do not share descriptors and memory.
const childEnv = "ARMREPRO_TEST_SERVER"

// TestMain gives every loop that waits a processor beside the ones that the
// tests' servers need: see package eventloop.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(64)
	// Most tests wait most of the time. What the command line says still wins.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	if os.Getenv(childEnv) != "" {
		if err := serveUntilEOF(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveUntilEOF prints where it listens and serves until its input ends.
func serveUntilEOF() error {
	s, err := upstream.Start(context.Background(), upstream.Config{Listen: []string{"127.0.0.1:0"}})
	if err != nil {
		return err
	}
	fmt.Println(s.Addrs()[0])
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
