//go:build race

package upstream

// raceEnabled says that the race detector is on, under which everything is
// several times slower and larger.
const raceEnabled = true
