package embed

import (
	"bytes"
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

// newLog returns the logger for etcd. A clean start of a single member warns three
// times, and a clean stop calls its own closed listeners errors, so only what etcd
// cannot survive is shown without being asked for. That is also reported to fatal.
func newLog(logger zerolog.Logger, fatal func(error)) *zap.Logger {
	encoder := zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "message"})
	core := func(event func() *zerolog.Event, wanted zap.LevelEnablerFunc) zapcore.Core {
		return zapcore.NewCore(encoder, zapcore.AddSync(logWriter(event)), wanted)
	}
	return zap.New(zapcore.NewTee(
		core(logger.Debug, func(l zapcore.Level) bool {
			return l >= zapcore.InfoLevel && l < zapcore.DPanicLevel && logger.GetLevel() <= zerolog.DebugLevel
		}),
		core(logger.Error, func(l zapcore.Level) bool { return l >= zapcore.DPanicLevel }),
	), zap.WithFatalHook(fatalHook(fatal)), zap.WithPanicHook(fatalHook(fatal)))
}

// logWriter hands lines of JSON to zerolog.
type logWriter func() *zerolog.Event

func (event logWriter) Write(line []byte) (int, error) {
	event().Str("part", "etcd").RawJSON("entry", bytes.TrimSpace(line)).Send()
	return len(line), nil
}

// fatalHook reports a fatal or panic entry. zap would end the process, or panic:
// here only the goroutine that met it ends.
type fatalHook func(error)

// OnWrite is part of zapcore.CheckWriteHook.
func (report fatalHook) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	err := fmt.Errorf("%w: %s", errDied, e.Message)
	if cause, ok := enc.Fields["error"]; ok {
		err = fmt.Errorf("%w: %v", err, cause)
	}
	report(err)
	runtime.Goexit()
}
