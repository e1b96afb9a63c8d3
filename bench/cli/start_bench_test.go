package cli

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// BenchmarkFirstRequest is how long a run takes from its start to its first measured
// request, without a warm-up. It starts the APISIX of this machine if
// ARMREPRO_REAL_APISIX is set, the built-in gateway otherwise.
func BenchmarkFirstRequest(b *testing.B) {
	gateway := "builtin"
	if os.Getenv("ARMREPRO_REAL_APISIX") != "" {
		gateway = "native"
	}
	var total time.Duration
	for b.Loop() {
		total += firstRequest(b, gateway)
	}
	b.ReportMetric(total.Seconds()/float64(b.N), "s/first-request")
}

func firstRequest(b *testing.B, gateway string) time.Duration {
	const lasts = time.Second
	cmd := exec.Command("/proc/self/exe", "run", "--gateway", gateway, "--scenario", "two-plugins",
		"--warmup", "0s", "--runs", "1", "--duration", lasts.String())
	cmd.Env = append(os.Environ(), asArmrepro+"=1")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	var measured time.Time
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "run 1 of 1") && measured.IsZero() {
			measured = time.Now()
		}
	}
	if err := cmd.Wait(); err != nil || measured.IsZero() {
		b.Fatalf("it measured nothing: %v", err)
	}
	return measured.Sub(began) - lasts
}
