package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"armrepro/bench/machine/vmtest/transcript"
)

// test boots every guest, prints a line about each, and returns what was wrong.
func test(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	progress := func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) }
	start := time.Now()
	k, err := fetch(ctx, o.cache, progress)
	if err != nil || o.fetchOnly {
		return err
	}
	fetched := time.Now()
	dir, err := os.MkdirTemp("", "vmtest-")
	if err != nil {
		return fmt.Errorf("create temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b, err := newBooter(ctx, k, dir, o.armrepro)
	if err != nil {
		return err
	}
	if o.console {
		b.console = stderr
	}
	built := time.Now()
	progress("%s", k.version)
	t := newTable(stdout)
	for _, g := range guests {
		progress("booting %s", g.name)
		begin := time.Now()
		seen := b.test(ctx, g)
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			break
		}
		t.add(g, seen, time.Since(begin))
		for _, wrong := range seen.wrong {
			err = errors.Join(err, fmt.Errorf("%s: %s", g.name, wrong))
		}
	}
	t.close("fetched in %.1f s, built in %.1f s, all in %.1f s",
		fetched.Sub(start).Seconds(), built.Sub(fetched).Seconds(), time.Since(start).Seconds())
	return err
}

// booter boots guests.
type booter struct {
	kit            kit
	dir            string
	init, armrepro []byte
	// console gets what the consoles show, as it comes.
	console io.Writer
}

// newBooter builds the programs of the guests in dir. If armrepro is a path,
// it is that program which is tested.
func newBooter(ctx context.Context, k kit, dir, armrepro string) (*booter, error) {
	b := &booter{kit: k, dir: dir, console: io.Discard}
	var err error
	if b.init, err = buildForGuest(ctx, dir, "armrepro/bench/machine/vmtest/init"); err != nil {
		return nil, err
	}
	if armrepro == "" {
		b.armrepro, err = buildForGuest(ctx, dir, "armrepro")
	} else if b.armrepro, err = os.ReadFile(armrepro); err != nil {
		err = fmt.Errorf("read armrepro: %w", err)
	}
	return b, err
}

// test boots g and says what was seen.
func (b *booter) test(ctx context.Context, g guest) outcome {
	initramfs := filepath.Join(b.dir, "initramfs")
	if err := writeInitramfs(initramfs, g, b.init, b.armrepro); err != nil {
		return outcome{wrong: []string{err.Error()}}
	}
	console, err := b.kit.boot(ctx, g, initramfs, b.console)
	if err != nil {
		return outcome{wrong: []string{err.Error()}}
	}
	done, err := transcript.Parse(console)
	seen := g.check(done)
	if err != nil {
		seen.failf("%v", err)
	}
	if len(done) == 0 {
		const most = 2000
		seen.failf("the console ends with %q", console[max(0, len(console)-most):])
	}
	return seen
}
