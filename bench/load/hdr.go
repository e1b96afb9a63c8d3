package load

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// significant is how many digits an HdrHistogram keeps of a value.
const significant = 3

// hdr returns the values as an HdrHistogram, each times unit.
func (h *histogram) hdr(unit int64) (*hdrhistogram.Histogram, error) {
	out := hdrhistogram.New(1, unit*int64(max(2, h.max)), significant)
	var err error
	h.each(func(v int, n uint64) bool {
		// HdrHistogram's zero bucket holds values below its lowest.
		err = out.RecordValues(unit*int64(v), int64(n))
		return err == nil
	})
	if err != nil {
		return nil, fmt.Errorf("make HdrHistogram: %w", err)
	}
	return out, nil
}

// encode returns the values as a base64 HdrHistogram V2 payload.
func (h *histogram) encode() (string, error) {
	out, err := h.hdr(1)
	if err != nil {
		return "", err
	}
	b, err := out.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("encode HdrHistogram: %w", err)
	}
	return string(b), nil
}

// WriteHDR writes the uncorrected latencies, at a fixed rate those from the
// intended send time, as an HdrHistogram log that the field's plotters and
// analyzers read. Its values are nanoseconds, as they expect.
func (m *Measurement) WriteHDR(w io.Writer) error {
	out, err := m.raw.hdr(int64(time.Microsecond))
	if err != nil {
		return err
	}
	out.SetStartTimeMs(m.began.UnixMilli())
	out.SetEndTimeMs(m.began.Add(m.elapsed).UnixMilli())
	log := hdrhistogram.NewHistogramLogWriter(w)
	err = cmp.Or(
		log.OutputComment("[Logged with armrepro]"),
		log.OutputLogFormatVersion(),
		log.OutputStartTime(m.began.UnixMilli()),
		log.OutputLegend(),
		log.OutputIntervalHistogram(out),
	)
	if err != nil {
		return fmt.Errorf("write HdrHistogram log: %w", err)
	}
	return nil
}
