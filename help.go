package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker: -X main.version=v1.2.3.
var version = "devel"

func runHelp(_ context.Context, args []string, s streams) error {
	if len(args) > 0 && args[0] != "help" {
		c, _, err := findCommand(args[:1])
		if err != nil {
			return err
		}
		return c.run(context.Background(), []string{"--help"}, s)
	}
	fmt.Fprint(s.out, `armrepro reproduces the published benchmark of the Apache APISIX gateway on ARM
servers on the machine it stands on, in one command.

Usage: armrepro [command] [flags]

Commands:
`)
	for _, c := range commands() {
		fmt.Fprintf(s.out, "  %-16s %s\n", c.name+prefixed(" ", c.args), c.summary)
	}
	fmt.Fprint(s.out, `
'armrepro COMMAND --help' shows a command's flags.

Exit codes: 0 measured, 1 failed, 2 usage, 3 measured but invalid, 130 interrupted.
`)
	return nil
}

// helpFor is the command that shows the help for name.
func helpFor(name string) string {
	if name == "help" {
		return "help"
	}
	return name + " --help"
}

func runVersion(_ context.Context, args []string, s streams) error {
	fs := newFlags("version", "", "Prints armrepro's version, and those of the Go and etcd in it.", s)
	if err := parse(fs, args, 0, 0); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "armrepro %s %s/%s %s etcd %s\n",
		version, runtime.GOOS, runtime.GOARCH, runtime.Version(), moduleVersion("go.etcd.io/etcd/server/v3"))
	return nil
}

// moduleVersion is the version of the module path in this binary.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == path {
				return dep.Version
			}
		}
	}
	return "unknown"
}
