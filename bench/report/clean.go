package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// longest bounds a text that is printed, in runes. The schema has the same bound
// on the texts of a file.
const longest = 4096

// clean makes s safe for a terminal; every text of a result passes it where it is
// printed, since a file can come from anywhere. White space becomes single
// spaces, and whatever else is not printable (control characters, direction
// marks) visible escapes.
func clean(s string) string {
	return escaped(strings.ToValidUTF8(strings.Join(strings.Fields(clip(s, longest)), " "), "\ufffd"), unprintable)
}

// escaped is s with the unsafe runes as JSON and Go write them in a string.
func escaped(s string, unsafe func(rune) bool) string {
	var b strings.Builder
	for _, r := range s {
		if !unsafe(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// clip shortens s to so many runes.
func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// unprintable reports whether r may not be sent to a terminal as it is.
func unprintable(r rune) bool { return !unicode.IsPrint(r) }
