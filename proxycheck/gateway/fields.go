package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// fields reads the members of a JSON object one by one. The first error stays;
// done reports it, or else a member that nobody read.
type fields struct {
	o    object
	seen []string
	err  error
}

// get returns a member, nil if it is absent.
func (f *fields) get(name string) any {
	f.seen = append(f.seen, name)
	return f.o[name]
}

// check keeps err as an error of the member name.
func (f *fields) check(name string, err error) {
	if f.err == nil && err != nil {
		f.err = fmt.Errorf("property %q validation failed: %w", name, err)
	}
}

func (f *fields) require(name string) {
	if f.err == nil && f.o[name] == nil {
		f.err = fmt.Errorf("property %q is required", name)
	}
}

// done returns the first error.
func (f *fields) done() error {
	if f.err != nil {
		return f.err
	}
	for _, name := range slices.Sorted(maps.Keys(f.o)) {
		if !slices.Contains(f.seen, name) {
			return fmt.Errorf("additional properties forbidden, found %s", name)
		}
	}
	return nil
}

func (f *fields) text(name, absent string) string {
	switch v := f.get(name).(type) {
	case nil:
		return absent
	case string:
		return v
	case json.Number:
		if name == "id" {
			return v.String()
		}
		f.check(name, errWrongType("string", v))
	default:
		f.check(name, errWrongType("string", v))
	}
	return absent
}

func (f *fields) boolean(name string, absent bool) bool {
	switch v := f.get(name).(type) {
	case nil:
	case bool:
		return v
	default:
		f.check(name, errWrongType("boolean", v))
	}
	return absent
}

func (f *fields) object(name string) object {
	switch v := f.get(name).(type) {
	case nil:
	case object:
		return v
	default:
		f.check(name, errWrongType("object", v))
	}
	return nil
}

func (f *fields) integer(name string, absent, low, high int64) int64 {
	v := f.get(name)
	if v == nil {
		return absent
	}
	n, err := toInteger(v)
	switch {
	case err != nil:
	case n < low:
		err = fmt.Errorf("expected %d to be at least %d", n, low)
	case n > high:
		err = fmt.Errorf("expected %d to be at most %d", n, high)
	}
	f.check(name, err)
	return n
}

// positive reads an integer above zero. If message is set, it is what any
// error says.
func (f *fields) positive(name, message string) int64 {
	v := f.get(name)
	if v == nil {
		return 0
	}
	n, err := toInteger(v)
	if err == nil && n <= 0 {
		err = fmt.Errorf("expected %d to be greater than 0", n)
	}
	if err != nil && message != "" {
		err = errors.New(message)
	}
	f.check(name, err)
	return n
}

// enum reads a text that APISIX knows several values of and this gateway one.
func (f *fields) enum(name string, known []string, supported string) {
	v := f.text(name, supported)
	switch {
	case v == supported:
	case slices.Contains(known, v):
		f.check(name, fmt.Errorf("the built-in gateway knows %q only", supported))
	default:
		f.check(name, errors.New("matches none of the enum values"))
	}
}

// one reads a text that may have one value only.
func (f *fields) one(name, value string) {
	if v := f.text(name, value); v != value {
		f.check(name, fmt.Errorf("the built-in gateway knows %q only", value))
	}
}

// toInteger accepts 5, and 5.0 or 5e0 too: the JSON of Lua knows one kind of
// number.
func toInteger(v any) (int64, error) {
	number, ok := v.(json.Number)
	if !ok {
		return 0, errWrongType("integer", v)
	}
	if n, err := number.Int64(); err == nil {
		return n, nil
	}
	// Beyond 2^53 a float skips integers.
	const exact = 1 << 53
	if n, err := number.Float64(); err == nil && n == math.Trunc(n) && math.Abs(n) <= exact {
		return int64(n), nil
	}
	return 0, errWrongType("integer", v)
}

func errWrongType(want string, got any) error {
	name := "null"
	switch got.(type) {
	case bool:
		name = "boolean"
	case json.Number:
		name = "number"
	case string:
		name = "string"
	case []any:
		name = "array"
	case object:
		name = "object"
	}
	return fmt.Errorf("wrong type: expected %s, got %s", want, name)
}
