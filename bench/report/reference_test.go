package report

import (
	"testing"

	"armrepro/bench/machine"
)

func TestSameCPU(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		arch, product, cloud, published string
		want                            bool
	}{
		{"arm64", "Graviton3", "AWS", "Graviton3", true},
		{"arm64", "Graviton2", "AWS", "Graviton3", false},
		{"arm64", "Ampere Altra", "", "Ampere Altra", true},
		{"arm64", "Ampere Altra or Altra Max", "Azure", "Ampere Altra", true},
		{"arm64", "Ampere Altra or Altra Max", "", "Ampere Altra", false},
		{"arm64", "", "Azure", "Ampere Altra", false},
		{"amd64", "Intel Xeon Platinum 8370C @ 2.80GHz", "Azure", "Intel Xeon Platinum 8370C @ 2.80GHz", true},
		{"amd64", "Intel Xeon", "Azure", "Intel Xeon", false},
		{"amd64", "AMD EPYC", "GCP", "AMD EPYC", false},
	} {
		m := machine.Machine{Arch: tt.arch, Cloud: tt.cloud, CPU: machine.CPU{Product: tt.product}}
		if got := sameCPU(m, reference{cpu: tt.published, cloud: "Azure"}); got != tt.want {
			t.Errorf("%q on %q and %q: %t, want %t", tt.product, tt.cloud, tt.published, got, tt.want)
		}
	}
}
