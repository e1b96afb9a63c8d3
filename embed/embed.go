// Package embed runs etcd inside this process: one member, loopback only, with
// throw-away data, for a gateway that reads its configuration through etcd's
// HTTP/JSON gateway.
package embed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/version"
	etcdembed "go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"armrepro/proxycheck/process"
)

// Version is the version of etcd, such as 3.7.3.
var Version = version.Version

// DefaultListen is where etcd listens unless told otherwise, and where a
// gateway looks for it.
const DefaultListen = "127.0.0.1:2379"

const (
	// startTimeout bounds the whole start, which takes about 0.1 s; an
	// emulated machine needs several times that.
	startTimeout = 20 * time.Second
	// closeTimeout bounds Close. etcd alone would wait for ever for a
	// client that connected and never said a word.
	closeTimeout = 3 * time.Second
	// minFree is the disk space in bytes that has to be there: etcd panics
	// when it runs out of it. The data itself takes about 2 MiB.
	minFree = 32 << 20
	// segmentBytes is the size of a write-ahead log file, of which two are
	// preallocated. etcd's own default is 64 MB.
	segmentBytes = 1 << 20
	// quotaBytes limits the database. It also sizes its memory map, which
	// is 10 GiB of address space by default.
	quotaBytes = 256 << 20
	// portAttempts is how often another free port is tried when somebody
	// else was quicker to take it.
	portAttempts = 10
)

// Config says how etcd runs.
type Config struct {
	// Listen is the loopback address of the client port, DefaultListen if
	// empty. Port 0 means any free port.
	Listen string
	// Dir is the folder in which the throw-away data folder is made; the
	// system's temporary folder if empty. Dir has to exist.
	Dir string
	// Logger receives what etcd logs, at debug level unless etcd cannot
	// survive it. The zero Logger is silent.
	Logger zerolog.Logger
}

// Server is a running etcd.
type Server struct {
	etcd     *etcdembed.Etcd
	endpoint string
	folder   *process.Folder
	errs     chan error
	closing  chan struct{}
	// hangUp ends the streams that are open, such as watches.
	hangUp context.CancelFunc
	once   sync.Once
	err    error
}

// globals are etcd's settings that hold for the whole process.
var globals = sync.OnceFunc(func() {
	wal.SegmentSizeBytes = segmentBytes
	silenceGRPC()
})

// Start starts etcd and returns once its JSON gateway answers. An error about
// the port, the folder or the disk has a Hint method. When ctx ends first,
// nothing is left running or on disk and the error wraps ctx's cause.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	globals()
	host, port, err := splitListen(cfg.Listen)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout,
		fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()

	for attempt := 1; ; attempt++ {
		concrete := port
		if port == 0 {
			if concrete, err = freePort(host); err != nil {
				return nil, err
			}
		}
		s, err := start(ctx, cfg, host, concrete)
		if port == 0 && attempt < portAttempts && errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		return s, err
	}
}

// start starts etcd on a concrete port.
func start(ctx context.Context, cfg Config, host string, port int) (*Server, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("start etcd: %w", context.Cause(ctx))
	}
	folder, err := makeFolder(cfg.Dir, minFree)
	if err != nil {
		return nil, err
	}
	streams, hangUp := context.WithCancel(context.Background())
	address := net.JoinHostPort(host, strconv.Itoa(port))
	s := &Server{
		endpoint: "http://" + address,
		folder:   folder,
		errs:     make(chan error, 1),
		closing:  make(chan struct{}),
		hangUp:   hangUp,
	}
	log := newLog(cfg.Logger, s.fail)
	if err := s.boot(ctx, etcdConfig(folder.Path(), address, log, streams)); err != nil {
		return nil, errors.Join(explain(err), s.Close())
	}
	go s.watch()
	return s, nil
}

// etcdConfig is etcd's configuration for one member that nobody but this
// machine talks to and whose data nobody needs afterwards.
func etcdConfig(dir, address string, log *zap.Logger, streams context.Context) *etcdembed.Config {
	client := url.URL{Scheme: "http", Host: address}
	c := etcdembed.NewConfig()
	c.Dir = filepath.Join(dir, "data")
	c.ListenClientUrls = []url.URL{client}
	c.AdvertiseClientUrls = []url.URL{client}
	// Without peers there is no second port that could be taken.
	c.ListenPeerUrls = nil
	// The time to ready is one election.
	c.TickMs = 10
	c.ElectionMs = 100
	c.UnsafeNoFsync = true
	c.QuotaBackendBytes = quotaBytes
	// Only tests give it users, and log in often.
	c.BcryptCost = 4
	c.ZapLoggerBuilder = etcdembed.NewZapLoggerBuilder(log)
	c.GRPCAdditionalServerOptions = []grpc.ServerOption{
		grpc.ChainStreamInterceptor(endWith(streams)),
	}
	return c
}

// boot starts etcd and waits until it is ready.
func (s *Server) boot(ctx context.Context, c *etcdembed.Config) error {
	err := <-guarded(func() (err error) {
		s.etcd, err = etcdembed.StartEtcd(c)
		return err
	})
	if errors.Is(err, errDied) {
		select {
		case err := <-s.errs:
			return err
		default:
		}
	}
	if err != nil {
		return err
	}
	select {
	case <-s.etcd.Server.ReadyNotify():
	case err := <-s.errs:
		return err
	case err := <-s.etcd.Err():
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return awaitGateway(ctx, s.endpoint)
}

// guarded delivers how f ended. What etcd regards as fatal ends the goroutine of f
// alone.
func guarded(f func() error) <-chan error {
	ended := make(chan error, 1)
	go func() {
		err := errDied
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("etcd failed: %v", r)
			}
			ended <- err
		}()
		err = f()
	}()
	return ended
}

// Endpoint is the URL that clients use, such as http://127.0.0.1:2379.
func (s *Server) Endpoint() string { return s.endpoint }

// Err delivers at most one error: etcd has ended by itself. It is never
// closed.
func (s *Server) Err() <-chan error { return s.errs }

// Close ends the open watches, stops etcd and removes its data. It takes a few
// milliseconds, and gives up with an error after 3 s. A second call does
// nothing and returns what the first did.
func (s *Server) Close() error {
	s.once.Do(func() {
		close(s.closing)
		s.hangUp()
		s.err = errors.Join(s.stop(), s.folder.Remove())
	})
	return s.err
}

// stop closes etcd, within closeTimeout.
func (s *Server) stop() error {
	if s.etcd == nil {
		return nil
	}
	select {
	case err := <-guarded(func() error { s.etcd.Close(); return nil }):
		if err != nil {
			err = fmt.Errorf("close etcd: %w", err)
		}
		return err
	case <-time.After(closeTimeout):
		return fmt.Errorf("close etcd: still running after %s, perhaps for a client that has not hung up", closeTimeout)
	}
}

// watch reports that etcd has ended without having been asked to.
func (s *Server) watch() {
	var err error
	select {
	case <-s.closing:
		return
	case err = <-s.etcd.Err():
	case <-s.etcd.Server.StopNotify():
	}
	if err == nil {
		err = errors.New("etcd stopped by itself")
	}
	s.fail(err)
}

// fail makes err the one that Err delivers unless there is one already.
func (s *Server) fail(err error) {
	select {
	case s.errs <- err:
	default:
	}
}
