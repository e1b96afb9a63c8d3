package proxycheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"armrepro/proxycheck/process"
)

// prover proves that what the Admin API accepted is what the data plane does.
type prover struct {
	// url is the data plane's.
	url string
	// server is what every answer's Server header has to be; empty for any.
	server string
	// metrics is the URL of the prometheus endpoint.
	metrics string
}

// route polls the data plane until it answers right several times in a row:
// each worker learns of a route by itself, and connections fall to any of them.
func (p *prover) route(ctx context.Context, r Route, workers int) error {
	inARow := max(5, 4*workers)
	err := process.Poll(ctx, pollEvery, func() error {
		for range inARow {
			if err := p.once(ctx, r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("wait for the route %s to be live: %w", r.Path, err)
	}
	return nil
}

// unservedError says that whatever answers isn't the route.
type unservedError struct{ error }

// once makes one request of the route and says what is wrong with the answer.
func (p *prover) once(ctx context.Context, r Route) error {
	ans, err := get(ctx, p.url+r.Path)
	if err != nil {
		return err
	}
	server := ans.Header.Get("Server")
	switch {
	case p.server != "" && server != p.server:
		return process.Hintf("two gateways share the port: end the other one, or choose another port with --gateway-port",
			"an answer came from %q, not from %s", server, p.server)
	case ans.Status == http.StatusBadGateway || ans.Status == http.StatusGatewayTimeout:
		return process.Hintf("the gateway doesn't reach the upstream: see that the addresses of the route are right from where it runs",
			"status %d", ans.Status)
	case ans.Status == http.StatusNotFound:
		return process.WithHint(&unservedError{fmt.Errorf("status %d: %s", ans.Status, adminMessage(ans))},
			"the gateway accepted the route and doesn't serve it: see its error log, a Lua library may be missing")
	case ans.Status != http.StatusOK:
		return fmt.Errorf("status %d: %s", ans.Status, adminMessage(ans))
	case r.WantBody != "" && string(ans.Body) != r.WantBody:
		const enough = 60
		return &unservedError{fmt.Errorf("the body is %.*q, not %.*q", enough, ans.Body, enough, r.WantBody)}
	}
	for _, name := range r.WantHeaders {
		if ans.Header.Values(name) == nil {
			return fmt.Errorf("the header %s is missing", name)
		}
	}
	for _, name := range r.WithoutHeaders {
		if ans.Header.Values(name) != nil {
			return fmt.Errorf("the header %s is there and should not be", name)
		}
	}
	return nil
}

// serverHeader is how the data plane names itself, on an answer of any status.
func (p *prover) serverHeader(ctx context.Context) (string, error) {
	ans, err := get(ctx, p.url+"/")
	if err != nil {
		return "", err
	}
	return ans.Header.Get("Server"), nil
}

func get(ctx context.Context, url string) (*process.Answer, error) {
	return process.Ask(ctx, http.MethodGet, url, nil, "")
}

// metricEvery is the time between two looks at the metrics, each of which
// costs the gateway much more than a request. 3.x recomputes them every 15 s.
const metricEvery = 250 * time.Millisecond

// counted polls the prometheus endpoint until the metric has counted at least so
// many requests of the route. An endpoint that isn't there is not awaited.
func (p *prover) counted(ctx context.Context, name, routeID string, requests uint64) error {
	err := process.Poll(ctx, metricEvery, func() error {
		ans, err := get(ctx, p.metrics)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return process.Permanent(err)
		}
		if err != nil {
			return err
		}
		if ans.Status != http.StatusOK {
			return process.Permanent(fmt.Errorf("%s: status %d: %s", p.metrics, ans.Status, adminMessage(ans)))
		}
		have, err := countOf(ans.Body, name, routeID)
		if err == nil && !(have >= float64(requests)) { // nor if it is NaN
			err = fmt.Errorf("the metric %s has counted %.0f requests of the route %s, not %d", name, have, routeID, requests)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for the metric %s to count: %w", name, err)
	}
	return nil
}

// countOf is the sum of the metric's samples in the text format whose route label
// is routeID; of a histogram or summary its count. It looks at such lines alone,
// whatever else there is.
func countOf(text []byte, name, routeID string) (float64, error) {
	sample := regexp.MustCompile(`^(?:_count)?\{(?:(?:.*,)?route="` + regexp.QuoteMeta(routeID) + `"(?:,.*)?\} (\S+))?`)
	var count float64
	found := false
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte(name))
		m := sample.FindSubmatch(rest)
		if !ok || m == nil {
			continue
		}
		found = true
		if n, err := strconv.ParseFloat(string(m[1]), 64); err == nil {
			count += n
		}
	}
	if !found {
		return 0, fmt.Errorf("there is no metric %s", name)
	}
	return count, nil
}

// workerTitle is how nginx titles a worker process. The privileged agent, the
// cache manager and workers that are shutting down have other titles.
const workerTitle = "nginx: worker process"

// nginxWorkers lists the worker processes of an nginx master, by pid.
func nginxWorkers(master int) ([]int, error) {
	children, err := process.Children(os.DirFS("/"), master)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, c := range children {
		if strings.TrimSpace(c.Title) == workerTitle {
			pids = append(pids, c.PID)
		}
	}
	return pids, nil
}

// checkOwner makes sure that every socket listening on port belongs to the
// process master or its children: with SO_REUSEPORT a second gateway could
// listen beside ours and take a share of the requests, unnoticed.
func checkOwner(port, master int) error {
	root := os.DirFS("/")
	before, err := process.Children(root, master)
	if err != nil {
		return err
	}
	holders, err := process.Listeners(root, port)
	if err != nil {
		return err
	}
	if len(holders) == 0 {
		return fmt.Errorf("nothing listens on port %d", port)
	}
	after, err := process.Children(root, master)
	if err != nil {
		return err
	}
	children := append(before, after...)
	for _, h := range holders {
		ours := h.PID == master || slices.ContainsFunc(children, func(c process.Proc) bool { return c.PID == h.PID })
		if ours {
			continue
		}
		err := process.Hintf("end that process, or choose another port",
			"check who listens on port %d: %s does too, and would get a share of the requests", port, &h)
		if h.PID == 0 || !process.Running(root, h.PID) {
			return err // perhaps a worker that was just ending
		}
		return process.Permanent(err)
	}
	return nil
}
