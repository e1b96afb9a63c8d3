package load

import (
	"errors"
	"strconv"
	"time"
)

// counters are what one loop, or all of them together, have measured.
type counters struct {
	// Result has the counts. What follows from them Measurement adds.
	Result
	// Reconnects stands for the Result's, which is nil for others' generators.
	Reconnects uint64
	// raw are the latencies in microseconds: from the first byte written, or
	// at a fixed rate from when it was meant to be.
	raw *histogram
	// service, at a fixed rate, are those from the first byte written; nil
	// without a rate.
	service *histogram
	// rates are the requests a second of one thread, every tenth of one.
	rates *histogram
	// causes are the first errors of each kind.
	causes [kinds]cause
}

// kind is a kind of error, as wrk tells them apart.
type kind uint8

const (
	connectError kind = iota
	readError
	writeError
	timeoutError
	statusError
	kinds
)

func (k kind) String() string {
	return [kinds]string{"connect", "read", "write", "timeout", "status"}[k]
}

// cause is why something failed, and when since the run began; nil if nothing did.
type cause struct {
	err error
	at  time.Duration
}

// What a response or a connection may lack, in words. Those of HTTP's framing are
// in parser.go.
var (
	errLate       = errors.New("no response within the timeout")
	errUnopened   = errors.New("no connection within the timeout")
	errUnanswered = errors.New("connection closed without a response")
	errCutOff     = errors.New("connection closed in the middle of a response")
	errUnasked    = errors.New("bytes that belong to no request")
)

func newCounters(cfg Config) counters {
	c := counters{raw: newHistogram(), rates: newHistogram()}
	if cfg.Rate > 0 {
		c.raw.open, c.service = true, newHistogram()
	}
	return c
}

// answered counts a response that took service since it was asked for, and sinceDue
// since it was meant to be, at a fixed rate. late says that it has been counted as
// a timeout already.
func (c *counters) answered(cfg *Config, status int, now, service, sinceDue time.Duration, late bool) {
	c.Requests++
	if status > 399 {
		c.Errors.Status++
		if c.causes[statusError].err == nil {
			c.causes[statusError] = cause{errors.New(strconv.Itoa(status)), now}
		}
	}
	if service > cfg.Timeout && !late {
		c.fail(timeoutError, errLate, now) // Since the last tick.
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

// fail counts an error of kind k.
func (c *counters) fail(k kind, why error, now time.Duration) {
	*c.Errors.of(k)++
	if c.causes[k].err == nil {
		c.causes[k] = cause{why, now}
	}
}

// words are the causes as Result has them.
func (c *counters) words() []string {
	var words []string
	for k, why := range c.causes {
		if why.err != nil {
			words = append(words, kind(k).String()+": "+why.err.Error())
		}
	}
	return words
}

// add counts everything that other counted.
func (c *counters) add(other *counters) {
	c.raw.add(other.raw)
	if c.service != nil {
		c.service.add(other.service)
	}
	c.rates.add(other.rates)
	c.Requests += other.Requests
	c.Bytes += other.Bytes
	c.Reconnects += other.Reconnects
	c.Unsent += other.Unsent
	c.Errors.Add(other.Errors)
	for k := range kinds {
		earlier := other.causes[k]
		if c.causes[k].err == nil || earlier.err != nil && earlier.at < c.causes[k].at {
			c.causes[k] = earlier
		}
	}
}
