package load

// Result is what one load run measured, as `armrepro load --output json`
// prints it and as a saved report keeps it.
type Result struct {
	// Requests counts the responses that completed inside the window,
	// whatever their status.
	Requests uint64 `json:"requests"`
	// Seconds is the measured window, from the first connect to the stop.
	Seconds float64 `json:"seconds"`
	// QPS is Requests / Seconds.
	QPS float64 `json:"qps"`
	// Bytes counts every byte read from the sockets, headers included.
	Bytes uint64 `json:"bytes"`
	// Reconnects counts connections that were opened again because the
	// server closed them after a response, which is no error. Nil where the load
	// generator does not tell.
	Reconnects *uint64 `json:"reconnects"`
	// Busy is the share of the window that the busiest loop had something to
	// do. Near 1 the generator measured itself.
	Busy *float64 `json:"busy"`
	// Rate is the requests a second that were asked for; 0 is a closed loop.
	Rate float64 `json:"rate,omitzero"`
	// Unsent counts, at a fixed rate, the requests whose time had come but
	// whose turn had not when the run ended.
	Unsent  uint64  `json:"unsent,omitzero"`
	Latency Latency `json:"latency_us"`
	// Service is, at a fixed rate, the latency from the first byte written:
	// what a closed loop would have called latency. Nil without a rate.
	Service *Latency `json:"service_us,omitempty"`
	Errors  Errors   `json:"errors"`
	// Causes are the first cause of each kind of error, in words and in the
	// order of Errors: "read: two Content-Length headers that differ".
	Causes []string `json:"causes,omitempty"`
	// Histogram is the uncorrected latency in microseconds as a base64
	// HdrHistogram V2 payload, which the field's tools read.
	Histogram string `json:"histogram,omitempty"`
}

// Latency holds microseconds to the last byte read: from the first byte
// written, or at a fixed rate from when that was meant to be. Everything but
// MeanWrk is uncorrected; a value is nil when nothing completed.
type Latency struct {
	Mean *float64 `json:"mean"`
	// MeanWrk is the mean after wrk's correction for coordinated omission
	// (stats_correct in wrk's stats.c), so what wrk would have printed. It is
	// nil at a fixed rate, which needs no correction.
	MeanWrk *float64 `json:"mean_wrk"`
	Stdev   *float64 `json:"stdev"`
	Max     *float64 `json:"max"`
	P50     *float64 `json:"p50"`
	P90     *float64 `json:"p90"`
	P99     *float64 `json:"p99"`
	P999    *float64 `json:"p999"`
}

// Errors counts failures by kind, as wrk names them.
type Errors struct {
	Connect uint64 `json:"connect"`
	Read    uint64 `json:"read"`
	Write   uint64 `json:"write"`
	Timeout uint64 `json:"timeout"`
	// Status counts responses with a status above 399.
	Status uint64 `json:"status"`
}

// Total is the number of failures of every kind.
func (e Errors) Total() uint64 {
	return e.Connect + e.Read + e.Write + e.Timeout + e.Status
}

// Add counts what other counted.
func (e *Errors) Add(other Errors) {
	for k := range kinds {
		*e.of(k) += *other.of(k)
	}
}

// of is the counter of errors of kind k.
func (e *Errors) of(k kind) *uint64 {
	return [kinds]*uint64{&e.Connect, &e.Read, &e.Write, &e.Timeout, &e.Status}[k]
}
