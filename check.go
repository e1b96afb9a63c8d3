package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"armrepro/bench"
	"armrepro/bench/machine"
	"armrepro/proxycheck"
)

const checkAbout = `Does everything that run does but the load: looks at the machine and the ports, starts etcd,
the upstream and the gateway, sends a request through the smoke route /anything/* to the own
upstream, proves the route of each scenario, and takes everything down again.`

func runCheck(ctx context.Context, args []string, s streams) error {
	o := newRunOptions()
	var output string
	fs := newFlags("check", "", checkAbout+checkList(), s)
	fs.StringVarP(&output, "output", "o", "text", "print the findings as text or json")
	o.addEnvironment(fs)
	if err := parse(fs, args, 0, 0); err != nil {
		return err
	}
	if output != "text" && output != "json" {
		return usagef("--output: %q is neither text nor json", output)
	}
	if err := o.check(); err != nil {
		return err
	}
	log, err := o.logs.logger(s.err)
	if err != nil {
		return err
	}
	c := &conductor{opts: o, log: log, result: o.newResult()}
	err = c.setUp(ctx)
	if err == nil {
		err = c.proveRoutes(ctx)
	}
	err = errors.Join(err, c.tearDown())
	if err != nil {
		return interruption(ctx, err)
	}
	if output == "json" {
		enc := json.NewEncoder(s.out)
		enc.SetIndent("", "  ")
		return enc.Encode(c.findings())
	}
	return c.findings().writeText(s.out)
}

// checkList is what is looked for about the machine, for the help.
func checkList() string {
	var b strings.Builder
	b.WriteString("\n\nLooks for this about the machine, as run does before, during and after the load. What it\nfinds is a warning of this code:\n")
	for _, k := range machine.FindingKinds() {
		fmt.Fprintf(&b, "  %-19s %s\n", k.Code, k.About)
	}
	return strings.TrimRight(b.String(), "\n")
}

// proveRoutes makes the smoke route and then each scenario's route live.
func (c *conductor) proveRoutes(ctx context.Context) error {
	gateway := benchGateway{c.gateway, c.nodes()}
	if err := c.smoke(ctx, gateway); err != nil {
		return err
	}
	for _, s := range c.opts.scenarios {
		if err := gateway.Apply(ctx, s); err != nil {
			return fmt.Errorf("scenario %s: %w", s.Name, err)
		}
		c.log.Info().Str("scenario", s.Name).Msg("route is live")
	}
	pids, err := c.gateway.Workers()
	if err != nil {
		c.log.Warn().Err(err).Msg("the gateway's workers cannot be seen")
		return nil
	}
	workers := len(pids)
	c.result.Gateway.Workers = &workers
	if workers != c.opts.workers {
		return &proxycheck.HintError{
			Err:  fmt.Errorf("the gateway runs %d workers, not %d", workers, c.opts.workers),
			Hint: fmt.Sprintf("Set worker_processes in the gateway's configuration, or say --workers %d.", workers),
		}
	}
	return nil
}

// smokePath is a path of the smoke route that the published benchmarks tried.
const smokePath = "/anything/das"

// smoke sends a request through the gateway to the own upstream, which echoes
// it.
func (c *conductor) smoke(ctx context.Context, gateway benchGateway) error {
	err := gateway.Apply(ctx, bench.Scenario{
		Name: "smoke", Path: smokePath, Route: map[string]any{"uri": "/anything/*"},
	})
	if err != nil {
		return fmt.Errorf("smoke route: %w", err)
	}
	body, err := get(ctx, c.gateway.URL()+smokePath)
	if err != nil {
		return fmt.Errorf("smoke route: %w", err)
	}
	var echo struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal([]byte(body), &echo); err != nil || !strings.HasSuffix(echo.URL, smokePath) {
		return errors.New("smoke route: the answer is not from the own upstream")
	}
	c.log.Info().Str("path", smokePath).Msg("smoke route answers from the own upstream")
	return nil
}

// checkFindings is what check prints.
type checkFindings struct {
	Machine machine.Machine   `json:"machine"`
	Gateway bench.GatewayInfo `json:"gateway"`
	Etcd    bench.EtcdInfo    `json:"etcd"`
	// Routes are those that were proved live.
	Routes []string `json:"routes"`
	// Pins is null where the kernel places the processes.
	Pins     *bench.Pins     `json:"pins"`
	Warnings []bench.Warning `json:"warnings"`
	// Checks are the codes of the checks of the machine that were made;
	// Unchecked are those that could not be.
	Checks    []string            `json:"checks"`
	Unchecked []machine.Unchecked `json:"unchecked"`
}

func (c *conductor) findings() checkFindings {
	r := c.result
	f := checkFindings{
		Machine: r.Machine, Gateway: r.Gateway, Etcd: r.Etcd, Routes: []string{smokePath}, Pins: r.Settings.Pins, Warnings: r.Warnings,
		Checks: machine.FindingCodes(), Unchecked: append([]machine.Unchecked{}, r.Unchecked...),
	}
	for _, u := range r.Unchecked {
		f.Checks = slices.DeleteFunc(f.Checks, func(code string) bool { return code == u.Code })
	}
	for _, s := range c.opts.scenarios {
		f.Routes = append(f.Routes, s.Name)
	}
	return f
}

// writeText prints one line for each thing that was checked.
func (f checkFindings) writeText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	m := f.Machine
	line("machine", "%s, %s, %d cores, %.1f GiB", orUnknown(m.CPU.Product), orUnknown(m.CPU.Core), m.Cores, float64(m.MemoryBytes)/(1<<30))
	switch {
	case f.Etcd.Embedded:
		line("etcd", "%s, embedded", f.Etcd.Version)
	case f.Etcd.Version != "":
		line("etcd", "%s", f.Etcd.Version)
	default:
		line("etcd", "the gateway's own, not looked at")
	}
	line("gateway", "%s %s (%s)", f.Gateway.Name, f.Gateway.Version, f.Gateway.Kind)
	if f.Gateway.Workers == nil {
		line("workers", "cannot be seen")
	} else {
		line("workers", "%d running", *f.Gateway.Workers)
	}
	if p := f.Pins; p != nil {
		line("pinned", "gateway on CPU %s, upstream on %s, load on %s", orUnknown(p.Gateway), p.Upstream, p.Load)
	}
	for _, r := range f.Routes {
		line("route", "%s is live", r)
	}
	line("checks", "%d made: %s", len(f.Checks), strings.Join(f.Checks, " "))
	for _, u := range f.Unchecked {
		line("unchecked", "%s: %s", u.Code, u.Why)
	}
	for _, warning := range f.Warnings {
		line("warning", "%s: %s", warning.Code, warning.Text)
		if warning.Hint != "" {
			line("", "%s", warning.Hint)
		}
	}
	line("after", "everything is taken down again")
	return t.Flush()
}
