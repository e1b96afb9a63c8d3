package gateway

import (
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestParseFaults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text string
		want Faults
		err  string
	}{
		{text: ""},
		{text: "slow-start=2s", want: Faults{SlowStart: 2 * time.Second}},
		{text: "admin-status=403", want: Faults{AdminStatus: 403}},
		{
			text: "slow-start=20ms,admin-status=503,not-found-for=1s,die-after=3s,die-after-requests=7,port-held",
			want: Faults{20 * time.Millisecond, 503, time.Second, 3 * time.Second, 7, true},
		},
		{text: "no-such=1", err: "none of admin-status, die-after,"},
		{text: "slow-start", err: "no positive time"},
		{text: "slow-start=-1s", err: "no positive time"},
		{text: "slow-start=2", err: "no positive time"},
		{text: "admin-status=200", err: "none of 401, 403, 503"},
		{text: "die-after-requests=0", err: "no positive number"},
		{text: "die-after-requests=x", err: "no positive number"},
		{text: "port-held=1", err: "no value"},
		{text: "slow-start=1s,", err: `fault ""`},
		{text: "slow-start=1s,slow-start=2s", err: "given twice"},
	} {
		got, err := ParseFaults(test.text)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q: error %v, want %q in it", test.text, err, test.err)
			}
			continue
		}
		if err != nil || got != test.want {
			t.Errorf("%q: %+v, %v, want %+v", test.text, got, err, test.want)
		}
	}
}

func FuzzParseFaults(f *testing.F) {
	for _, seed := range []string{
		"", "port-held", "slow-start=2s,admin-status=403,not-found-for=1s,die-after=3s",
		"die-after-requests=18446744073709551615", "slow-start=", "=,=", "admin-status=401,admin-status=401",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		faults, err := ParseFaults(text)
		if err != nil {
			if faults != (Faults{}) {
				t.Errorf("%q: faults %+v beside the error %v", text, faults, err)
			}
			return
		}
		again, err := ParseFaults(faults.String())
		if err != nil || again != faults {
			t.Errorf("%q reads as %+v, written %q and read again as %+v, %v", text, faults, faults, again, err)
		}
	})
}

func TestSlowStart(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, V3)
	cfg.Faults.SlowStart = 100 * time.Millisecond
	began := time.Now()
	startTest(t, cfg)
	if took := time.Since(began); took < cfg.Faults.SlowStart {
		t.Errorf("started after %s", took)
	}
}

func TestForcedAdminStatus(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 403, 503} {
		cfg := testConfig(t, V3)
		cfg.Faults.AdminStatus = status
		s := startTest(t, cfg)
		if a := put(t, s, "1", plainBody("/hello", "127.0.0.1:1")); a.status != status {
			t.Errorf("PUT answered %d, want %d", a.status, status)
		}
		if a := do(t, http.MethodGet, s.URL()+"/hello", nil, ""); a.status != http.StatusNotFound {
			t.Errorf("the data plane answered %d", a.status)
		}
	}
}

func TestNotFoundFor(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, V3)
	cfg.Faults.NotFoundFor = 300 * time.Millisecond
	s := startTest(t, cfg)
	began := time.Now()
	mustPut(t, s, "1", plainBody("/hello", startUpstream(t)))
	awaitStatus(t, s, "/hello", http.StatusOK)
	if took := time.Since(began); took < cfg.Faults.NotFoundFor {
		t.Errorf("the route was live after %s", took)
	}
}

func TestDies(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text     string
		requests int // answered before it dies
	}{
		{"die-after=50ms", 0},
		{"die-after-requests=6", 5},
	} {
		t.Run(test.text, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t, V3)
			var err error
			if cfg.Faults, err = ParseFaults(test.text); err != nil {
				t.Fatal(err)
			}
			s := startTest(t, cfg)
			answered := 0
			await(t, "the worker to die", func() bool {
				_, err := try(http.MethodGet, s.URL()+"/", nil, "")
				if err == nil {
					answered++
				}
				return err != nil
			})
			if test.requests > 0 && answered != test.requests {
				t.Errorf("%d requests were answered, want %d", answered, test.requests)
			}
			select {
			case err := <-s.Err():
				if !errors.Is(err, ErrDied) {
					t.Errorf("Err delivered %v", err)
				}
			case <-time.After(patience):
				t.Error("Err delivered nothing")
			}
			await(t, "the Admin API to close", func() bool {
				_, err := try(http.MethodGet, s.AdminURL(), nil, "")
				return err != nil
			})
		})
	}
}

func TestPortHeld(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, V3)
	cfg.Faults.PortHeld = true
	s, err := Start(t.Context(), cfg)
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("error %v, want the port to be taken", err)
	}
}
