package proxycheck

import (
	"strings"
	"testing"

	"armrepro/proxycheck/process"
)

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		want string
		err  string
	}{
		{in: "3.18.0", want: "3.18.0"},
		{in: " 2.15.0\n", want: "2.15.0"},
		{in: "3.0.0-rc1", want: "3.0.0"},
		{in: "", err: "want three numbers"},
		{in: "3.18", err: "want three numbers"},
		{in: "3.18.0.1", err: "want three numbers"},
		{in: "3.x.0", err: "want three numbers"},
		{in: "3.-1.0", err: "want three numbers"},
		{in: "3.99999999999999999999.0", err: "want three numbers"},
		{in: "3.018.0", err: "want three numbers"},
	} {
		v, err := ParseVersion(tt.in)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("ParseVersion(%q) = %v, want an error with %q", tt.in, err, tt.err)
			}
			continue
		}
		if err != nil || v.String() != tt.want {
			t.Errorf("ParseVersion(%q) = %v, %v, want %s", tt.in, v, err, tt.want)
		}
	}
}

func TestSupportedVersions(t *testing.T) {
	t.Parallel()
	for in, ok := range map[string]bool{
		"1.5.0": false, "2.13.3": false, "2.14.0": true, "2.14.1": true, "2.15.3": true,
		"2.99.0": false, "3.0.0": true, "3.9.1": true, "3.18.0": true, "3.19.0": true, "4.0.0": true,
	} {
		v, err := ParseVersion(in)
		if err != nil {
			t.Fatal(err)
		}
		err = v.checkSupported()
		if (err == nil) != ok {
			t.Errorf("%s: %v, want supported: %v", in, err, ok)
		}
		if err != nil && !strings.Contains(process.Hint(err), "--gateway attach") {
			t.Errorf("%s: the hint is %q", in, process.Hint(err))
		}
	}
}

func TestVersionTraits(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][2]bool{ // 3.x way, defaults in Lua
		"2.15.0": {false, false}, "3.0.0": {true, false}, "3.9.1": {true, false},
		"3.10.0": {true, true}, "3.18.0": {true, true},
	} {
		v, _ := ParseVersion(in)
		if got := [2]bool{v.isV3(), v.defaultsInLua()}; got != want {
			t.Errorf("%s: %v, want %v", in, got, want)
		}
	}
}

func FuzzParseVersion(f *testing.F) {
	for _, s := range []string{"3.18.0", "2.15.0-rc1", "", "..", "1.2.3.4", "0.0.0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseVersion(s)
		if err != nil {
			return
		}
		again, err := ParseVersion(v.String())
		if err != nil || again != v {
			t.Errorf("%q is %v, which reads as %v, %v", s, v, again, err)
		}
	})
}
