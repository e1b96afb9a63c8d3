// Package transcript is how a guest tells over a serial console what its
// commands did. Firmware and kernel write to that console as well, so every
// line of the guest's own begins with a tag, and all others are noise.
package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const tag = "vm$ "

// Command is what became of one command.
type Command struct {
	// Line is the command and its arguments, separated by spaces.
	Line           string
	Stdout, Stderr string
	// Exit is the exit code, or -1 for one that a signal ended.
	Exit int
	// Failure is what keeps the guest from running its commands; the rest is
	// empty then.
	Failure string
}

// Write writes c as a line of JSON.
func Write(w io.Writer, c Command) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	// Firmware leaves the cursor anywhere.
	_, err = fmt.Fprintf(w, "\n%s%s\n", tag, text)
	return err
}

// Parse returns the commands that a console shows. The error is a failure of the
// guest, or says what is wrong with a line.
func Parse(console []byte) ([]Command, error) {
	var done []Command
	for line := range bytes.Lines(console) {
		text, ok := bytes.CutPrefix(line, []byte(tag))
		if !ok {
			continue
		}
		var c Command
		if err := json.Unmarshal(text, &c); err != nil {
			return done, fmt.Errorf("read console: %w in %.80q", err, text)
		}
		if c.Failure != "" {
			return done, errors.New(c.Failure)
		}
		done = append(done, c)
	}
	return done, nil
}
