package report

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"armrepro/bench"
	"armrepro/bench/fitness"
)

// printable returns r with every string that a report prints made safe for a
// terminal: a file can come from anywhere, and an escape sequence in it must
// not reach the reader's screen.
func printable(r bench.Result) bench.Result {
	pins := bench.Pins{}
	if r.Settings.Pins != nil {
		pins = *r.Settings.Pins
		r.Settings.Pins = &pins
	}
	openResty := bench.OpenRestyInfo{}
	if r.Gateway.OpenResty != nil {
		openResty = *r.Gateway.OpenResty
		r.Gateway.OpenResty = &openResty
	}
	for _, s := range []*string{
		&r.Label, &openResty.Version, &openResty.Path, &openResty.LuaJIT,
		&r.Tool.Name, &r.Tool.Version,
		&r.Machine.CPU.Implementer, &r.Machine.CPU.Part, &r.Machine.CPU.Variant, &r.Machine.CPU.Revision,
		&r.Machine.CPU.Vendor, &r.Machine.CPU.Core, &r.Machine.CPU.Product,
		&r.Machine.CPU.Frequency.ClaimedBy, &r.Machine.Hypervisor, &r.Machine.Container,
		&r.Machine.Allowed, &r.Machine.EmulatedWhy,
		&r.Machine.Cloud, &r.Machine.Instance, &r.Machine.Arch, &r.Machine.Kernel, &r.Machine.OS,
		&pins.Gateway, &pins.Upstream, &pins.Load,
		&r.Gateway.Kind, &r.Gateway.Name, &r.Gateway.Version,
		&r.Etcd.Version,
	} {
		*s = clean(*s)
	}
	r.Machine.CPU.Kinds = slices.Clone(r.Machine.CPU.Kinds)
	for i := range r.Machine.CPU.Kinds {
		k := &r.Machine.CPU.Kinds[i]
		k.Core = clean(k.Core)
	}
	if r.Machine.Mitigations != nil {
		flaws := map[string]string{}
		for name, state := range r.Machine.Mitigations {
			flaws[clean(name)] = clean(state)
		}
		r.Machine.Mitigations = flaws
	}
	r.Unchecked = slices.Clone(r.Unchecked)
	for i, u := range r.Unchecked {
		r.Unchecked[i] = fitness.Unchecked{Code: clean(u.Code), Why: clean(u.Why)}
	}
	r.Gateway.Plugins = slices.Clone(r.Gateway.Plugins)
	for i, p := range r.Gateway.Plugins {
		r.Gateway.Plugins[i] = clean(p)
	}
	r.Scenarios = slices.Clone(r.Scenarios)
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		s.Name, s.Title = clean(s.Name), clean(s.Title)
	}
	r.Warnings = slices.Clone(r.Warnings)
	for i := range r.Warnings {
		w := &r.Warnings[i]
		w.Code, w.Text, w.Hint = clean(w.Code), clean(w.Text), clean(w.Hint)
	}
	r.Verdict = bench.Verdict(clean(string(r.Verdict)))
	return r
}

// clean turns white space into single spaces and whatever else is not
// printable (control characters, direction marks, invalid UTF-8) into
// visible escapes.
func clean(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if strings.IndexFunc(s, unprintable) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			escape(&b, rune(s[0]))
		case unprintable(r):
			escape(&b, r)
		default:
			b.WriteRune(r)
		}
		s = s[size:]
	}
	return b.String()
}

// unprintable reports whether r may not be sent to a terminal as it is.
func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// escape writes r as JSON and Go write it in a string.
func escape(b *strings.Builder, r rune) {
	const digits = "0123456789abcdef"
	if r > 0xffff {
		hi, lo := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
		escape(b, hi)
		escape(b, lo)
		return
	}
	b.WriteString(`\u`)
	for shift := 12; shift >= 0; shift -= 4 {
		b.WriteByte(digits[r>>shift&0xf])
	}
}
