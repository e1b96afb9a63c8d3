package experiment

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"syscall"
	"time"

	"armrepro/bench"
	"armrepro/bench/nginx"
	"armrepro/bench/wrk"
	"armrepro/proxycheck/process"
)

// The programs of Config.LoadTool and Config.UpstreamTool.
const (
	OwnTool   = "armrepro"
	WrkTool   = "wrk"
	NginxTool = "nginx"
)

// tools are the installed programs that take part; nil where armrepro's own does.
type tools struct {
	wrk   *wrk.Tool
	nginx *nginx.Nginx
	// echo are the modules that nginx has to load.
	echo []string
}

// findTools finds the programs that the config names, and names them in the result.
func (c *conductor) findTools(ctx context.Context) error {
	named := &c.result.Tools
	if c.cfg.LoadTool == WrkTool || c.cfg.CrossCheck {
		found, err := wrk.Find(ctx)
		if err != nil {
			return err
		}
		c.tools.wrk = &found
		external := &bench.External{Name: WrkTool, Version: found.Version, Path: found.Path}
		if c.cfg.LoadTool == WrkTool {
			named.Load = external
		} else {
			named.CrossCheck = external
		}
	}
	if c.cfg.UpstreamTool == NginxTool {
		found, err := nginx.Find(ctx)
		if err == nil {
			c.tools.echo, err = found.Echo()
		}
		if err != nil {
			return err
		}
		c.tools.nginx = found
		named.Upstream = &bench.External{Name: NginxTool, Version: found.Version, Path: found.Path}
	}
	return nil
}

// generator loads what is measured.
func (c *conductor) generator() bench.Generator {
	if c.cfg.LoadTool == WrkTool {
		return wrkGenerator{pinned{c.fit.pins.Load}, *c.tools.wrk}
	}
	return childGenerator{pinned{c.fit.pins.Load}}
}

// nginxConnections is what each worker of the published benchmarks' upstream may have
// open.
const nginxConnections = 10620

// startNginx starts the installed nginx as the upstream, in a folder of its own that the
// next run removes if this one is killed.
func (c *conductor) startNginx(listen []string) (*runningUpstream, error) {
	dirs, err := process.TempDirs("")
	if err != nil {
		return nil, err
	}
	folder, err := process.NewFolder(process.UpstreamHome, "", dirs...)
	if err != nil {
		return nil, err
	}
	c.down = append(c.down, folder.Remove)
	counts := c.tools.nginx.Counts()
	cfg, err := c.tools.nginx.Process(folder.Path(), nginx.Config{
		Modules: c.tools.echo, Workers: c.cfg.Settings.Workers,
		Connections: nginxConnections + c.cfg.Settings.Connections,
		HTTP:        nginx.Upstream(counts, listen...),
	})
	if err != nil {
		return nil, err
	}
	child, err := process.Start(cfg)
	if err != nil {
		return nil, err
	}
	c.down = append(c.down, func() error { return child.Stop(syscall.SIGTERM, upstreamStop) })
	u := &runningUpstream{Process: child, workers: func() ([]int, error) { return nginxWorkers(child, c.cfg.Settings.Workers) }}
	if counts {
		u.answered = countNginx("http://" + listen[0] + nginx.StatusPath)
	}
	return u, folder.Own(child)
}

// nginxWorkers waits until a master has started all its workers and lists them.
func nginxWorkers(master *process.Process, want int) (pids []int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), upstreamTimeout)
	defer cancel()
	err = process.Poll(ctx, time.Millisecond, func() error {
		children, err := process.Children(os.DirFS("/"), master.Pid())
		if err == nil && len(children) != want {
			err = fmt.Errorf("nginx runs %d workers, not %d: %s", len(children), want, master.Tail())
		}
		pids = nil
		for _, child := range children {
			pids = append(pids, child.PID)
		}
		return err
	})
	return pids, err
}

// countNginx asks an nginx for the number of requests that it has taken, without those
// that ask for it.
func countNginx(url string) func() (uint64, error) {
	var asked uint64
	return func() (uint64, error) {
		ctx, cancel := context.WithTimeout(context.Background(), controlTimeout)
		defer cancel()
		body, err := process.Fetch(ctx, http.MethodGet, url, "")
		if err != nil {
			return 0, err
		}
		asked++
		n, err := nginx.ParseStatus(body)
		return n - min(n, asked), err
	}
}
