package cli

import (
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// logFlags are the flags that say what is logged and how.
type logFlags struct {
	level   string
	format  string
	quiet   bool
	noColor bool
}

func (l *logFlags) add(fs *pflag.FlagSet) {
	l.level, l.format = "info", "text"
	fs.Var(newChoice(&l.level, "log level", "debug", "info", "warn", "error"),
		"log-level", "minimum log level: debug, info, warn or error")
	fs.Var(newChoice(&l.format, "log format", "text", "json"),
		"log-format", "format of the log on standard error: text or json")
	fs.BoolVarP(&l.quiet, "quiet", "q", false, "log only warnings and errors; show no progress")
	l.addNoColor(fs)
}

func (l *logFlags) addNoColor(fs *pflag.FlagSet) {
	fs.BoolVar(&l.noColor, "no-color", false, "use no colors (same as setting NO_COLOR)")
}

// color says whether w may be written to in color.
func (l *logFlags) color(w io.Writer) bool {
	return !l.noColor && os.Getenv("NO_COLOR") == "" && takesEscapes(w)
}

// takesEscapes says whether w is a terminal that acts upon escape sequences.
func takesEscapes(w io.Writer) bool { return isTerminal(w) && os.Getenv("TERM") != "dumb" }

// logger returns the logger that the flags ask for.
func (l *logFlags) logger(w io.Writer) zerolog.Logger {
	level, err := zerolog.ParseLevel(l.level)
	if err != nil || l.quiet {
		level = max(level, zerolog.WarnLevel)
	}
	if l.format == "text" {
		w = zerolog.ConsoleWriter{Out: w, NoColor: !l.color(w), TimeFormat: time.TimeOnly}
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger()
}

// fileOf is the file behind w; nil if there is none.
func fileOf(w io.Writer) *os.File {
	if s, ok := w.(*stream); ok {
		w = s.Writer
	}
	f, _ := w.(*os.File)
	return f
}

func isTerminal(w io.Writer) bool {
	f := fileOf(w)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// terminalWidth is the width of w in columns; 0 if it is no terminal.
func terminalWidth(w io.Writer) int {
	if !isTerminal(w) {
		return 0
	}
	width, _, err := term.GetSize(int(fileOf(w).Fd()))
	if err != nil {
		return 0
	}
	const mostReadable = 120
	return min(width, mostReadable)
}
