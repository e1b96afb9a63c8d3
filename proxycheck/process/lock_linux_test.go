package process

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestLock has one holder at a time, and names it.
func TestLock(t *testing.T) {
	t.Parallel()
	what := "testing " + t.TempDir()
	release, err := Lock(what)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Lock(what)
	self := "process " + strconv.Itoa(os.Getpid()) + " ("
	if err == nil || !strings.Contains(err.Error(), self) || !strings.Contains(Hint(err), "kill "+strconv.Itoa(os.Getpid())) {
		t.Errorf("a second holder: %v, hint %q; want %q", err, Hint(err), self)
	}
	if other, err := Lock(what + " something else"); err != nil {
		t.Errorf("another lock: %v", err)
	} else if err := other(); err != nil {
		t.Error(err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if release, err = Lock(what); err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
