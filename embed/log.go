package embed

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/rs/zerolog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/grpclog"
)

// errDied says that etcd met an error that it cannot survive.
var errDied = errors.New("etcd failed for good")

// silenceGRPC keeps gRPC, which knows nothing of etcd's logger, off stderr.
func silenceGRPC() {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
}

// logCore hands what etcd logs to zerolog.
type logCore struct {
	logger zerolog.Logger
	fields []zapcore.Field
	fatal  func(error)
}

// newLogCore returns a core that reports what etcd regards as fatal to fatal.
func newLogCore(logger zerolog.Logger, fatal func(error)) *logCore {
	return &logCore{logger: logger, fatal: fatal}
}

// zap returns the logger for etcd. zap would end the process after a fatal
// entry and panic after a panic entry: here only the goroutine that met it
// ends, and the error is reported.
func (c *logCore) zap() *zap.Logger {
	return zap.New(c, zap.WithFatalHook(c), zap.WithPanicHook(c))
}

// level maps etcd's levels to ours. A clean start of a single member warns
// three times, and a clean stop calls its own closed listeners errors, so only
// what etcd cannot survive is shown without being asked for.
func (c *logCore) level(l zapcore.Level) zerolog.Level {
	switch {
	case l >= zapcore.DPanicLevel:
		return zerolog.ErrorLevel
	case l >= zapcore.InfoLevel:
		return zerolog.DebugLevel
	}
	return zerolog.TraceLevel
}

// Enabled is part of zapcore.Core. A fatal entry is always wanted, for its
// hook.
func (c *logCore) Enabled(l zapcore.Level) bool {
	return l >= zapcore.DPanicLevel || c.logger.GetLevel() <= c.level(l)
}

// With is part of zapcore.Core.
func (c *logCore) With(fields []zapcore.Field) zapcore.Core {
	clone := *c
	clone.fields = append(c.fields[:len(c.fields):len(c.fields)], fields...)
	return &clone
}

// Check is part of zapcore.Core.
func (c *logCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

// Write is part of zapcore.Core.
func (c *logCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range c.fields {
		f.AddTo(enc)
	}
	for _, f := range fields {
		f.AddTo(enc)
	}
	c.logger.WithLevel(c.level(e.Level)).Fields(enc.Fields).Str("part", "etcd").Msg(e.Message)
	return nil
}

// Sync is part of zapcore.Core.
func (c *logCore) Sync() error { return nil }

// OnWrite ends the goroutine that logged a fatal entry.
func (c *logCore) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	if cause, ok := enc.Fields["error"]; ok {
		c.fatal(fmt.Errorf("%w: %s: %v", errDied, e.Message, cause))
	} else {
		c.fatal(fmt.Errorf("%w: %s", errDied, e.Message))
	}
	runtime.Goexit()
}
