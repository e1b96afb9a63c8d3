// Command armrepro reproduces the published benchmark of the Apache APISIX
// gateway on ARM servers on the machine you run it on.
package main

import (
	"os"
	"os/signal"

	"armrepro/bench/cli"
)

// version is set by the linker: -X main.version=v1.2.3.
var version = "devel"

func main() {
	// Room for every signal that a closing terminal or a wrapper sends at
	// once: which of them count is decided where they are read.
	const most = 16
	signals := make(chan os.Signal, most)
	signal.Notify(signals, cli.Signals()...)
	os.Exit(cli.Main(cli.Program{
		Version: version, Args: os.Args[1:],
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}, signals))
}
