package apisixtest

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

var (
	pluginsTable = regexp.MustCompile(`(?s)\n  plugins = \{\n(.*?)\n  \}`)
	pluginName   = regexp.MustCompile(`(?m)^\s*"([^"]+)"`)
)

// LuaJIT is the luajit command, as far as it is used: for APISIX's command, and
// for scripts that print the folder which that would write to or the plugin list
// of apisix/cli/config.lua.
func LuaJIT() int {
	args := os.Args[1:]
	switch {
	case len(args) == 1 && args[0] == "-v":
		fmt.Println("LuaJIT 2.1.1723681758 -- Copyright (C) 2005-2023 Mike Pall. https://luajit.org/")
		return 0
	case len(args) > 0 && strings.HasSuffix(args[0], "apisix/cli/apisix.lua"):
		return runCLI(args[0], args[1:])
	case len(args) == 2 && args[0] == "-e" && strings.Contains(args[1], `package.loaded["apisix.cli.ops"] =`):
		home, err := homeOf(cliLua)
		if err != nil {
			fmt.Fprintln(os.Stderr, "luajit:", err)
			return 1
		}
		fmt.Println(home)
		return 0
	case len(args) == 2 && args[0] == "-e" && strings.Contains(args[1], `dofile("apisix/cli/config.lua").plugins`):
		return printPlugins()
	}
	fmt.Fprintf(os.Stderr, "luajit: this fake can't run %q\n", args)
	return 1
}

func printPlugins() int {
	file, err := os.ReadFile("apisix/cli/config.lua")
	if err != nil {
		fmt.Fprintf(os.Stderr, "luajit: cannot open apisix/cli/config.lua: %v\n", err)
		return 1
	}
	table := pluginsTable.FindSubmatch(file)
	if table == nil {
		fmt.Fprintln(os.Stderr, "luajit: (command line):1: bad argument #1 to 'ipairs' (table expected, got nil)")
		return 1
	}
	for _, m := range pluginName.FindAllSubmatch(table[1], -1) {
		fmt.Println(string(m[1]))
	}
	return 0
}
