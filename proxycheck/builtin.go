package proxycheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"armrepro/proxycheck/process"
)

// BuiltinName is what the built-in gateway calls itself in its Server header.
// It is not APISIX, and its figures are never labelled so.
const BuiltinName = "armrepro-builtin"

// builtin is this program's own gateway in a child process.
type builtin struct{ core }

// AdminKeyEnv is the variable from which commands take the Admin API's key if
// no flag gives it.
const AdminKeyEnv = "ARMREPRO_ADMIN_KEY"

// StartBuiltin starts the built-in gateway as a child process and returns when
// its Admin API answers.
func StartBuiltin(ctx context.Context, cfg Config) (Gateway, error) {
	cfg = cfg.complete()
	b := &builtin{}
	b.core = newCore(cfg, Info{Kind: "builtin", Name: BuiltinName}, b.howEnded)
	err := b.reach(cfg.Ports.Admin)
	if err == nil {
		err = b.markKeys()
	}
	if err == nil {
		err = b.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the built-in gateway: %w", err), b.Close())
	}
	return b, nil
}

func (b *builtin) start(ctx context.Context) error {
	args := []string{
		"gateway",
		"--listen", hostPort(b.cfg.Ports.Data),
		"--admin-listen", hostPort(b.cfg.Ports.Admin),
		"--prometheus-listen", hostPort(b.cfg.Ports.Prometheus),
		"--etcd", strings.Join(b.cfg.Etcd.Endpoints, ","),
		"--etcd-prefix", b.cfg.EtcdPrefix,
	}
	etcd := b.cfg.Etcd
	for _, f := range [][2]string{{"user", etcd.User}, {"cacert", etcd.CACert}, {"cert", etcd.Cert}, {"key", etcd.Key}} {
		if f[1] != "" {
			args = append(args, "--etcd-"+f[0], f[1])
		}
	}
	err := b.core.start(process.Config{
		Path: b.cfg.Path,
		Args: args,
		// Everybody can read a command line, but only this user its
		// environment.
		Env: append(os.Environ(), AdminKeyEnv+"="+b.cfg.AdminKey, EtcdPasswordEnv+"="+b.cfg.Etcd.Password),
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timeouts.Start)
	defer cancel()
	ctx, cancelAlive := b.whileAlive(ctx)
	defer cancelAlive()
	return b.awaitReady(ctx)
}

// awaitReady waits for the Admin API, which the gateway opens last, and learns
// the name from the data plane.
func (b *builtin) awaitReady(ctx context.Context) error {
	err := process.Poll(ctx, pollEvery, func() error { return b.admin.answers(ctx) })
	if err != nil {
		return fmt.Errorf("wait for its Admin API: %w", err)
	}
	err = process.Poll(ctx, pollEvery, func() error {
		server, err := b.prove.serverHeader(ctx)
		b.prove.server = server
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for its data plane: %w", err)
	}
	name, version, _ := strings.Cut(b.prove.server, "/")
	if name != BuiltinName {
		return fmt.Errorf("learn its version: %q answers on port %d", b.prove.server, b.cfg.Ports.Data)
	}
	b.info.Version = version
	b.info.Plugins, err = b.admin.plugins(ctx)
	return err
}

func (b *builtin) howEnded() error {
	err := fmt.Errorf("the built-in gateway has ended: %w", cmp.Or(b.child.Err(), errors.New("exit status 0")))
	if said := lastLines(b.child.Tail(), 5); said != "" {
		err = fmt.Errorf("%w; it printed: %s", err, said)
	}
	return err
}

// Apply makes the route live.
func (b *builtin) Apply(ctx context.Context, r Route) error {
	if err := b.apply(ctx, r); err != nil {
		return err
	}
	return checkOwner(b.cfg.Ports.Data, b.child.Pid())
}

// Workers is the gateway's one process.
func (b *builtin) Workers() ([]int, error) {
	if isClosed(b.done) {
		return nil, b.howEnded()
	}
	return []int{b.child.Pid()}, nil
}
