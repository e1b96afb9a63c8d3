// Package transcript is how a guest tells over a serial console what its
// commands did. Firmware and kernel write to that console as well, so every
// line of the guest's own begins with a tag, and all others are noise.
package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The tags of a command line, its standard output and error, its exit code,
// and of what kept the guest from running commands.
const (
	tagCommand = "vm$ "
	tagStdout  = "vm1 "
	tagStderr  = "vm2 "
	tagExit    = "vm= "
	tagFailure = "vm! "
)

// Command is what became of one command. The outputs end with a line feed
// unless they are empty.
type Command struct {
	// Line is the command and its arguments, separated by spaces.
	Line           string
	Stdout, Stderr string
	// Exit is the exit code, or -1 for one that a signal ended.
	Exit int
}

// Write writes c.
func Write(w io.Writer, c Command) error {
	var b bytes.Buffer
	// Firmware leaves the cursor anywhere.
	b.WriteByte('\n')
	b.WriteString(tagCommand + c.Line + "\n")
	writeLines(&b, tagStdout, c.Stdout)
	writeLines(&b, tagStderr, c.Stderr)
	b.WriteString(tagExit + strconv.Itoa(c.Exit) + "\n")
	_, err := w.Write(b.Bytes())
	return err
}

// WriteFailure writes what keeps the guest from running its commands.
func WriteFailure(w io.Writer, failure error) error {
	var b bytes.Buffer
	b.WriteByte('\n')
	writeLines(&b, tagFailure, failure.Error())
	_, err := w.Write(b.Bytes())
	return err
}

func writeLines(b *bytes.Buffer, tag, text string) {
	for line := range strings.Lines(text) {
		b.WriteString(tag)
		b.WriteString(strings.TrimSuffix(line, "\n"))
		b.WriteByte('\n')
	}
}

// Parse returns the commands that a console shows, as far as they ended. The
// error says what is wrong with the rest: a failure of the guest, a command
// that did not end, or a line that cannot be.
func Parse(console []byte) ([]Command, error) {
	var done []Command
	var current *Command
	for line := range strings.Lines(string(console)) {
		// The terminal puts a carriage return before the line feed.
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		tag, text := cutTag(line)
		switch {
		case tag == "":
		case tag == tagFailure:
			return done, errors.New(text)
		case tag == tagCommand:
			if current != nil {
				return done, fmt.Errorf("read console: %q did not end before %q", current.Line, text)
			}
			current = &Command{Line: text}
		case current == nil:
			return done, fmt.Errorf("read console: %q belongs to no command", line)
		case tag == tagStdout:
			current.Stdout += text + "\n"
		case tag == tagStderr:
			current.Stderr += text + "\n"
		default:
			exit, err := strconv.Atoi(text)
			if err != nil {
				return done, fmt.Errorf("read console: the exit code of %q: %w", current.Line, err)
			}
			current.Exit = exit
			done, current = append(done, *current), nil
		}
	}
	if current != nil {
		return done, fmt.Errorf("read console: it stops within %q", current.Line)
	}
	return done, nil
}

// cutTag splits a line into its tag and the rest; the tag is empty if the line
// has none.
func cutTag(line string) (tag, text string) {
	if len(line) < len(tagCommand) {
		return "", line
	}
	switch tag, text := line[:len(tagCommand)], line[len(tagCommand):]; tag {
	case tagCommand, tagStdout, tagStderr, tagExit, tagFailure:
		return tag, text
	}
	return "", line
}
