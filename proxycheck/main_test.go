package proxycheck

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"armrepro/proxycheck/apisixtest"
	"armrepro/proxycheck/gateway"
)

// The test binary plays the programs that the drivers start, and a whole run
// that can be killed.
func TestMain(m *testing.M) {
	apisixtest.Main()
	timeUnit *= 8
	if len(os.Args) > 1 && os.Args[1] == "gateway" {
		os.Exit(runGateway(os.Args[2:]))
	}
	if os.Getenv(conductorEnv) != "" {
		os.Exit(runConductor())
	}
	// The tests wait for processes more than they work.
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	code := m.Run()
	if s, err := sharedEtcd(); err == nil {
		s.Close()
	}
	os.Exit(code)
}

// runGateway is the gateway command, with the flags that StartBuiltin passes. A
// program called hangs never listens, and one called by a status answers every
// request to the Admin API with it.
func runGateway(args []string) int {
	fs := flag.NewFlagSet("gateway", flag.ContinueOnError)
	cfg := gateway.Config{Version: "1.0.0", AdminKey: os.Getenv(AdminKeyEnv)}
	fs.StringVar(&cfg.Listen, "listen", "", "")
	fs.StringVar(&cfg.AdminListen, "admin-listen", "", "")
	fs.StringVar(&cfg.PrometheusListen, "prometheus-listen", "", "")
	fs.StringVar(&cfg.Prefix, "etcd-prefix", "", "")
	etcd := fs.String("etcd", "", "")
	fs.StringVar(&cfg.Etcd.User, "etcd-user", "", "")
	fs.StringVar(&cfg.Etcd.CACert, "etcd-cacert", "", "")
	fs.StringVar(&cfg.Etcd.Cert, "etcd-cert", "", "")
	fs.StringVar(&cfg.Etcd.Key, "etcd-key", "", "")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	cfg.Etcd.Endpoints = strings.Split(*etcd, ",")
	cfg.Etcd.Password = os.Getenv(EtcdPasswordEnv)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	called := filepath.Base(os.Args[0])
	if called == "hangs" {
		<-ctx.Done()
		return 0
	}
	if status, err := strconv.Atoi(called); err == nil {
		err = http.ListenAndServe(cfg.AdminListen, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
		}))
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s, err := gateway.Start(ctx, cfg)
	if err == nil {
		defer s.Close()
		select {
		case <-ctx.Done():
		case err = <-s.Err():
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// conductorEnv holds the configuration of a run that a test will kill.
const conductorEnv = "ARMREPRO_TEST_CONDUCTOR"

// conductorConfig is what a conductor needs to know, and that JSON can carry.
type conductorConfig struct {
	Kind     string
	Install  *Install
	RunDir   string
	Ports    Ports
	Etcd     Etcd
	Prefix   string
	Attach   Config
	Upstream string
	// Umask and User are the run's; zero means this process's.
	Umask, User int
}

// conductorReport is what a conductor prints once its route is live.
type conductorReport struct {
	Workers []int
	RouteID string
}

// runConductor starts or attaches to a gateway, makes a route live, says so,
// and waits to be killed.
func runConductor() int {
	var cfg conductorConfig
	err := json.Unmarshal([]byte(os.Getenv(conductorEnv)), &cfg)
	var gw Gateway
	if cfg.Umask != 0 {
		syscall.Umask(cfg.Umask)
	}
	if err == nil {
		ctx := context.Background()
		switch cfg.Kind {
		case "native":
			gw, err = StartNative(ctx, Config{Install: cfg.Install, RunDir: cfg.RunDir, Ports: cfg.Ports, Etcd: cfg.Etcd, EtcdPrefix: cfg.Prefix})
		case "builtin":
			gw, err = StartBuiltin(ctx, Config{RunDir: cfg.RunDir, Ports: Ports{Data: cfg.Ports.Data, Admin: cfg.Ports.Admin, Prometheus: cfg.Ports.Prometheus}, Etcd: cfg.Etcd})
		case "attach":
			gw, err = Attach(ctx, cfg.Attach)
		case "home": // alone, without a gateway
			var h *home
			if h, err = newHome(cfg.RunDir, cfg.Install); err == nil {
				err = h.write("conf/config.yaml", nil)
			}
		}
		if err == nil && gw != nil {
			err = gw.Apply(ctx, plainRoute(cfg.Upstream))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	report := conductorReport{}
	switch g := gw.(type) {
	case *native:
		report.RouteID = g.routeID
		report.Workers, _ = g.Workers()
	case *builtin:
		report.Workers, _ = g.Workers()
	case *attached:
		report.RouteID = g.routeID
	}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		return 1
	}
	killed := make(chan os.Signal, 1)
	signal.Notify(killed, syscall.SIGUSR1)
	<-killed
	return 0
}
