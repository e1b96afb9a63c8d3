package gateway

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Faults make the gateway fail on demand in ways that a real one was seen to
// fail. The zero value is a gateway that works.
type Faults struct {
	// SlowStart is how long the ports stay closed at first.
	SlowStart time.Duration
	// AdminStatus is what every request to the Admin API is answered with:
	// 401, 403 or 503.
	AdminStatus int
	// NotFoundFor is how long a route that was put answers 404, although
	// the Admin API said that it was accepted.
	NotFoundFor time.Duration
	// DieAfter is how long after its start the worker dies.
	DieAfter time.Duration
	// DieAfterRequests is the number of requests on the data port after
	// which the worker dies.
	DieAfterRequests uint64
	// PortHeld makes the data port taken by somebody else.
	PortHeld bool
}

// faultSyntax sets the fault of a name from the text behind its equals sign.
// port-held has none.
var faultSyntax = map[string]func(f *Faults, value string) error{
	"slow-start":    func(f *Faults, v string) error { return parseDelay(&f.SlowStart, v) },
	"not-found-for": func(f *Faults, v string) error { return parseDelay(&f.NotFoundFor, v) },
	"die-after":     func(f *Faults, v string) error { return parseDelay(&f.DieAfter, v) },
	"admin-status": func(f *Faults, v string) error {
		switch v {
		case "401", "403", "503":
			f.AdminStatus, _ = strconv.Atoi(v)
			return nil
		}
		return fmt.Errorf("%q is none of 401, 403, 503", v)
	},
	"die-after-requests": func(f *Faults, v string) error {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil || n == 0 {
			return fmt.Errorf("%q is no positive number", v)
		}
		f.DieAfterRequests = n
		return nil
	},
	"port-held": func(f *Faults, v string) error {
		if v != "" {
			return fmt.Errorf("it takes no value, not %q", v)
		}
		f.PortHeld = true
		return nil
	},
}

// FaultNames are the names that ParseFaults knows, sorted.
func FaultNames() []string { return slices.Sorted(maps.Keys(faultSyntax)) }

// ParseFaults reads a list such as slow-start=2s,admin-status=403. An empty
// text means no fault.
func ParseFaults(text string) (Faults, error) {
	var f Faults
	seen := map[string]bool{}
	for item := range strings.SplitSeq(text, ",") {
		if item == "" && text == "" {
			break
		}
		name, value, _ := strings.Cut(item, "=")
		set, known := faultSyntax[name]
		if !known {
			return Faults{}, fmt.Errorf("read fault %q: none of %s", item, strings.Join(FaultNames(), ", "))
		}
		if seen[name] {
			return Faults{}, fmt.Errorf("read fault %q: given twice", name)
		}
		seen[name] = true
		if err := set(&f, value); err != nil {
			return Faults{}, fmt.Errorf("read fault %q: %w", name, err)
		}
	}
	return f, nil
}

// String is the text that ParseFaults reads.
func (f Faults) String() string {
	var items []string
	add := func(set bool, name, value string) {
		if set {
			items = append(items, name+value)
		}
	}
	add(f.SlowStart > 0, "slow-start=", f.SlowStart.String())
	add(f.AdminStatus > 0, "admin-status=", strconv.Itoa(f.AdminStatus))
	add(f.NotFoundFor > 0, "not-found-for=", f.NotFoundFor.String())
	add(f.DieAfter > 0, "die-after=", f.DieAfter.String())
	add(f.DieAfterRequests > 0, "die-after-requests=", strconv.FormatUint(f.DieAfterRequests, 10))
	add(f.PortHeld, "port-held", "")
	return strings.Join(items, ",")
}

func parseDelay(d *time.Duration, value string) error {
	v, err := time.ParseDuration(value)
	if err != nil || v <= 0 {
		return fmt.Errorf("%q is no positive time such as 2s", value)
	}
	*d = v
	return nil
}
