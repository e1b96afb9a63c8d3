package main

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// slowCommand is the word that makes this program the slow server.
const slowCommand = "slow-server"

// The injected latencies are log-normal, as those of real servers roughly are:
// without steps, at the edge of which a percentile would jump.
const (
	slowMedian = 2 * time.Millisecond
	// slowSigma puts p90 at 1.9 times the median and p99 at 3.2 times.
	slowSigma = 0.5
	// slowValues is how many latencies there are, evenly spaced in rank.
	slowValues = 1000
)

// slowQuantile is the latency that the share p of the answers does not exceed.
func slowQuantile(p float64) time.Duration {
	return time.Duration(float64(slowMedian) * math.Exp(slowSigma*math.Sqrt2*math.Erfinv(2*p-1)))
}

// slowLatencies are the injected latencies in an order that is the same every
// time and without pattern, so that any run of them has the distribution.
func slowLatencies() []time.Duration {
	latencies := make([]time.Duration, slowValues)
	for i := range latencies {
		latencies[i] = slowQuantile((float64(i) + 0.5) / slowValues)
	}
	order := rand.New(rand.NewPCG(1, 2))
	order.Shuffle(slowValues, func(i, j int) { latencies[i], latencies[j] = latencies[j], latencies[i] })
	return latencies
}

// serveSlow answers on the first listener, each request after the next of the latencies, until
// ctx ends.
func serveSlow(ctx context.Context, listeners []net.Listener) error {
	latencies := slowLatencies()
	var next atomic.Uint64
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			latency := latencies[(next.Add(1)-1)%slowValues]
			// The kernel's timer, since Go's wakes up to a millisecond late.
			// Signals of Go's scheduler interrupt it.
			left := unix.NsecToTimespec(latency.Nanoseconds())
			for unix.Nanosleep(&left, &left) == unix.EINTR {
			}
			_, _ = io.WriteString(w, answerBody)
		}),
	}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(listeners[0]); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
