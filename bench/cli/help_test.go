package cli

import "testing"

func TestReflow(t *testing.T) {
	t.Parallel()
	const about = `Loads URL over connections
and prints what wrk would.

Differences from wrk:
  - There are no Lua scripts.
  - A server that refuses
    connections counts once.

  name: a long example that stays as it is
    uri: /hello

The end.`
	const narrow = `Loads URL over
connections and
prints what wrk
would.

Differences from wrk:
  - There are no Lua
    scripts.
  - A server that
    refuses
    connections
    counts once.

  name: a long example that stays as it is
    uri: /hello

The end.`
	if got := reflow(about, 21); got != narrow {
		t.Errorf("at 21 columns:\n%s", got)
	}
	if got := reflow(about, 80); got != about {
		t.Errorf("at 80 columns:\n%s", got)
	}
}
