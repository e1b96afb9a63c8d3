package proxycheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"armrepro/proxycheck/process"
)

// BuiltinName is what the built-in gateway calls itself in its Server header.
// It is not APISIX, and its figures are never labelled so.
const BuiltinName = "armrepro-builtin"

// BuiltinConfig says how to start the built-in gateway.
type BuiltinConfig struct {
	// Path is the program with the gateway command; empty means this one.
	Path string
	// Port, AdminPort and PrometheusPort default to 9080, 9180 and 9091.
	Port, AdminPort, PrometheusPort int
	// Etcd is where the gateway keeps its routes.
	Etcd Etcd
	// EtcdPrefix is the key prefix; empty means a new one, which is removed
	// again from etcd.
	EtcdPrefix string
	// EtcdEnds says that the etcd ends with this run, and its keys with it.
	EtcdEnds bool
	// AdminKey is the Admin API's key; empty means a random one.
	AdminKey string
	// RunDir is where runs leave things; empty means the temporary folders.
	RunDir   string
	Logger   zerolog.Logger
	Timeouts Timeouts
}

func (cfg *BuiltinConfig) setDefaults() {
	cfg.Path = cmp.Or(cfg.Path, process.Self)
	cfg.Port = cmp.Or(cfg.Port, 9080)
	cfg.AdminPort = cmp.Or(cfg.AdminPort, 9180)
	cfg.PrometheusPort = cmp.Or(cfg.PrometheusPort, 9091)
	cfg.AdminKey = cmp.Or(cfg.AdminKey, randomHex(16))
	cfg.Timeouts.setDefaults()
}

// builtin is this program's own gateway in a child process.
type builtin struct {
	core
	cfg       BuiltinConfig
	keys      *ownKeys
	child     *process.Process
	closeOnce sync.Once
	closeErr  error
}

// AdminKeyEnv is the variable from which commands take the Admin API's key if
// no flag gives it.
const AdminKeyEnv = "ARMREPRO_ADMIN_KEY"

// StartBuiltin starts the built-in gateway as a child process and returns when
// its Admin API answers.
func StartBuiltin(ctx context.Context, cfg BuiltinConfig) (Gateway, error) {
	cfg.setDefaults()
	var err error
	if cfg.Etcd, err = cfg.Etcd.Normalize(); err != nil {
		return nil, fmt.Errorf("start the built-in gateway: %w", err)
	}
	b := &builtin{cfg: cfg}
	if cfg.EtcdPrefix == "" {
		b.cfg.EtcdPrefix = ownEtcdPrefix + randomHex(4)
	}
	client := newHTTPClient()
	b.core = core{
		info:     Info{Kind: "builtin", Name: BuiltinName},
		admin:    &admin{base: baseURL(cfg.AdminPort), key: cfg.AdminKey, client: client},
		prove:    prover{url: baseURL(cfg.Port), metrics: baseURL(cfg.PrometheusPort) + "/apisix/prometheus/metrics", client: client},
		routeID:  newRouteID(),
		timeouts: cfg.Timeouts,
		log:      cfg.Logger,
		expected: 1,
		done:     make(chan struct{}),
		ended:    b.howEnded,
		runDir:   cfg.RunDir,
	}
	b.keepIn(cfg.Etcd, cfg.EtcdPrefix)
	if cfg.EtcdPrefix == "" && !cfg.EtcdEnds {
		b.keys, err = markKeys(cfg.RunDir, cfg.Etcd, b.cfg.EtcdPrefix)
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
		"--listen", hostPort(b.cfg.Port),
		"--admin-listen", hostPort(b.cfg.AdminPort),
		"--prometheus-listen", hostPort(b.cfg.PrometheusPort),
		"--etcd", strings.Join(b.cfg.Etcd.Endpoints, ","),
		"--etcd-prefix", b.cfg.EtcdPrefix,
	}
	etcd := b.cfg.Etcd
	for _, f := range [][2]string{{"user", etcd.User}, {"cacert", etcd.CACert}, {"cert", etcd.Cert}, {"key", etcd.Key}} {
		if f[1] != "" {
			args = append(args, "--etcd-"+f[0], f[1])
		}
	}
	var err error
	b.child, err = process.Start(process.Config{
		Path: b.cfg.Path,
		Args: args,
		// Everybody can read a command line, but only this user its
		// environment.
		Env: append(os.Environ(), AdminKeyEnv+"="+b.cfg.AdminKey, EtcdPasswordEnv+"="+b.cfg.Etcd.Password),
	})
	if err != nil {
		return err
	}
	go b.watch(b.child)
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
		return fmt.Errorf("learn its version: %q answers on port %d", b.prove.server, b.cfg.Port)
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
	return checkOwner(b.cfg.Port, b.child.Pid())
}

// Workers is the gateway's one process.
func (b *builtin) Workers() ([]int, error) {
	if isClosed(b.done) {
		return nil, b.howEnded()
	}
	return []int{b.child.Pid()}, nil
}

// Close removes the route, stops the gateway and removes its keys from etcd.
func (b *builtin) Close() error {
	b.closeOnce.Do(func() {
		var errs []error
		if b.child != nil {
			b.closing.Store(true)
			errs = append(errs, b.removeRoute(), b.child.Stop(syscall.SIGTERM, 2*time.Second))
		}
		errs = append(errs, b.keys.remove())
		if err := errors.Join(errs...); err != nil {
			b.closeErr = fmt.Errorf("stop the built-in gateway: %w", err)
		}
	})
	return b.closeErr
}
