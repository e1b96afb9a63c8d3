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

// LuaJIT is the luajit command, as far as it is used on its own: a script that
// prints the plugin list of apisix/cli/config.lua.
func LuaJIT() int {
	if len(os.Args) != 3 || os.Args[1] != "-e" || !strings.Contains(os.Args[2], `dofile("apisix/cli/config.lua").plugins`) {
		fmt.Fprintf(os.Stderr, "luajit: this fake can't run %q\n", os.Args[1:])
		return 1
	}
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
