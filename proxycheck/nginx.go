package proxycheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

var (
	listenPattern  = regexp.MustCompile(`(?m)^\s*listen\s+(?:[0-9.]+:)?([0-9]+)\b`)
	workersPattern = regexp.MustCompile(`(?m)^\s*worker_processes\s+(\S+);`)
)

// checkNginxConf makes sure that the nginx.conf that `apisix init` wrote is made
// from our configuration and not from a default.
func checkNginxConf(conf []byte, port, workers int) error {
	listens := false
	for _, m := range listenPattern.FindAllSubmatch(conf, -1) {
		listens = listens || string(m[1]) == strconv.Itoa(port)
	}
	if !listens {
		return fmt.Errorf("the nginx.conf that apisix init wrote doesn't listen on port %d", port)
	}
	m := workersPattern.FindSubmatch(conf)
	if m == nil || string(m[1]) != strconv.Itoa(workers) {
		return fmt.Errorf("the nginx.conf that apisix init wrote doesn't ask for %d worker processes", workers)
	}
	return nil
}

// failureHint knows the reasons for which nginx ends while starting.
func failureHint(said string) string {
	switch {
	case strings.Contains(said, "Address already in use"):
		return "the port was taken meanwhile: see who listens on it with ss -ltnp, or choose another"
	case strings.Contains(said, "module '") && strings.Contains(said, "not found"):
		return "a Lua library of the install is missing: reinstall APISIX, or run make deps in the source checkout"
	case strings.Contains(said, "Too many open files"):
		return "raise the limit of open files: ulimit -n 65536"
	}
	return ""
}

// removeKeys removes every key under prefix from etcd, through the first
// endpoint that does it.
func removeKeys(endpoints []string, prefix string) error {
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	key := []byte(prefix + "/")
	end := bytes.Clone(key)
	end[len(end)-1]++ // the first key behind all those that begin with key
	body, err := json.Marshal(map[string][]byte{"key": key, "range_end": end})
	if err != nil {
		return fmt.Errorf("remove the keys of %s: %w", prefix, err)
	}
	client := newHTTPClient()
	var errs []error
	for _, endpoint := range endpoints {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint+"/v3/kv/deleterange", bytes.NewReader(body))
		if err != nil {
			return fmt.Errorf("remove the keys of %s: %w", prefix, err)
		}
		ans, err := fetch(client, req)
		if err == nil && ans.status == http.StatusOK {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("%s: status %d", endpoint, ans.status)
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("remove the keys of %s from etcd: %w", prefix, errors.Join(errs...))
}
