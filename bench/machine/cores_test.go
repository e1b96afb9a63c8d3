package machine

import "testing"

func TestCoreName(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]CPU{
		"":                                    {},
		"Neoverse N1":                         {Core: "Neoverse N1", MIDR: MIDR{Implementer: "0x41", Part: "0xd0c"}},
		"Qualcomm 0x51/0x805":                 {MIDR: MIDR{Implementer: "0x51", Part: "0x805"}},
		"0x99/0x111":                          {MIDR: MIDR{Implementer: "0x99", Part: "0x111"}},
		"Zen 5":                               {Core: "Zen 5", Vendor: "AMD", Family: 26, Model: 2},
		"AMD family 26 model 200 stepping 0":  {Vendor: "AMD", Family: 26, Model: 200},
		"Intel family 6 model 167 stepping 8": {Vendor: "Intel", Family: 6, Model: 167, Stepping: 8},
		"family 6 model 1 stepping 1":         {Family: 6, Model: 1, Stepping: 1},
	} {
		if got := c.CoreName(); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}
