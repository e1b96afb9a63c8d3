package main

import (
	"fmt"
	"math"
	"time"
)

// figure is one number of a run that is compared.
type figure struct {
	name string
	// of reads it from a sample; NaN or 0 if the run did not measure it.
	of     func(sample) float64
	format func(float64) string
	bound  bound
}

// The figures. Times are in microseconds.

func requestRate(b bound) figure {
	return figure{"requests/s", func(s sample) float64 { return s.qps }, formatCount, b}
}

func meanLatency(b bound) figure {
	return figure{"mean latency", func(s sample) float64 { return s.mean }, formatMicroseconds, b}
}

func generatorCost(b bound) figure {
	return figure{"CPU per request", func(s sample) float64 { return perRequest(s.generatorCPU, s) }, formatMicroseconds, b}
}

func upstreamCost(b bound) figure {
	return figure{"CPU per request", func(s sample) float64 { return perRequest(s.upstreamCPU, s) }, formatMicroseconds, b}
}

// proxyBusy is the share of a core that the proxy used.
func proxyBusy() figure {
	return figure{"proxy busy", func(s sample) float64 {
		return s.proxyCPU.Seconds() * s.qps / float64(s.requests)
	}, formatShare, bound{}}
}

// proxyCost is what a request took the proxy.
func proxyCost() figure {
	return figure{"proxy CPU per request", func(s sample) float64 { return perRequest(s.proxyCPU, s) }, formatMicroseconds, bound{}}
}

func perRequest(cpu time.Duration, s sample) float64 {
	return float64(cpu.Nanoseconds()) / 1e3 / float64(s.requests)
}

func answerSize(b bound) figure {
	return figure{"bytes per request", func(s sample) float64 { return float64(s.counts.Bytes) / float64(s.counts.Requests) }, formatBytes, b}
}

func formatCount(n float64) string { return fmt.Sprintf("%.0f", n) }

func formatShare(n float64) string { return fmt.Sprintf("%.0f%%", 100*n) }

func formatBytes(n float64) string { return fmt.Sprintf("%.6g B", n) }

func formatMicroseconds(n float64) string {
	if math.Abs(n) >= 1e3 {
		return fmt.Sprintf("%.3f ms", n/1e3)
	}
	return fmt.Sprintf("%.2f µs", n)
}
