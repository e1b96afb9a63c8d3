package proxycheck

import (
	"os"
	"testing"

	"armrepro/proxycheck/apisixtest"
)

func TestMain(m *testing.M) {
	apisixtest.Main()
	os.Exit(m.Run())
}
