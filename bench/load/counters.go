package load

import "time"

// counters are what one thread, or all of them together, have measured.
type counters struct {
	// raw are the latencies in microseconds: from the first byte written, or
	// at a fixed rate from when it was meant to be.
	raw *histogram
	// service, at a fixed rate, are those from the first byte written; nil
	// without a rate.
	service *histogram
	// rates are the requests a second of one thread, every tenth of one.
	rates    *histogram
	requests uint64
	bytes    uint64
	reopened uint64
	// unsent counts the requests whose time had come but whose turn had not
	// when the run ended.
	unsent uint64
	errors Errors
}

func newCounters(cfg Config) counters {
	c := counters{raw: newHistogram(), rates: newHistogram()}
	if cfg.Rate > 0 {
		c.raw, c.service = newOpenHistogram(), newHistogram()
	}
	return c
}

// answered counts an answer that took service since it was asked for, and sinceDue
// since it was meant to be, at a fixed rate. late says that it has been counted as
// a timeout already.
func (c *counters) answered(cfg *Config, status int, service, sinceDue time.Duration, late bool) {
	c.requests++
	if status > 399 {
		c.errors.Status++
	}
	if service > cfg.Timeout && !late {
		c.errors.Timeout++ // Since the last tick.
	}
	if c.service == nil {
		c.raw.record(toMicroseconds(service), 1)
		return
	}
	c.raw.record(toMicroseconds(sinceDue), 1)
	c.service.record(toMicroseconds(service), 1)
}

// toMicroseconds rounds d, so that a mean has no bias.
func toMicroseconds(d time.Duration) int {
	return int((d + time.Microsecond/2) / time.Microsecond)
}

// add counts everything that other counted.
func (c *counters) add(other *counters) {
	c.raw.add(other.raw)
	if c.service != nil {
		c.service.add(other.service)
	}
	c.rates.add(other.rates)
	c.requests += other.requests
	c.bytes += other.bytes
	c.reopened += other.reopened
	c.unsent += other.unsent
	c.errors.Connect += other.errors.Connect
	c.errors.Read += other.errors.Read
	c.errors.Write += other.errors.Write
	c.errors.Timeout += other.errors.Timeout
	c.errors.Status += other.errors.Status
}
