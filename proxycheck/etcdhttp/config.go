// Package etcdhttp speaks to etcd's HTTP/JSON gateway, which is the way that
// APISIX takes.
package etcdhttp

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"armrepro/proxycheck/process"
)

// PasswordEnv is the variable from which commands take the password of etcd's
// user: everybody can read a command line.
const PasswordEnv = "ARMREPRO_ETCD_PASSWORD"

// Config says how to reach an etcd.
type Config struct {
	// Endpoints are client URLs of one cluster, such as
	// http://127.0.0.1:2379, all http or all https.
	Endpoints []string
	// User and Password are for an etcd that wants them, else empty.
	User, Password string
	// CACert is a PEM file with the authorities that signed the endpoints'
	// certificates; empty means the system's.
	CACert string
	// Cert and Key are PEM files for an etcd that asks its clients for a
	// certificate, else empty.
	Cert, Key string
}

// String is the endpoints alone: no secret of a Config is ever printed.
func (c Config) String() string { return process.Redact(strings.Join(c.Endpoints, ",")) }

// GoString is String, for %#v.
func (c Config) GoString() string { return c.String() }

// HTTPS says whether the endpoints are https.
func (c Config) HTTPS() bool {
	return len(c.Endpoints) > 0 && strings.HasPrefix(c.Endpoints[0], "https:")
}

// Normalize checks c and returns it with the user info of the endpoints moved to
// User and Password. All have to agree, since APISIX takes one user for them.
func (c Config) Normalize() (Config, error) {
	if len(c.Endpoints) == 0 {
		return c, errors.New("use an etcd: no etcd endpoint given")
	}
	schemes := map[string]bool{}
	endpoints := make([]string, len(c.Endpoints))
	for i, endpoint := range c.Endpoints {
		u, err := url.Parse(endpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			hint := "write it with its scheme, http or https"
			if strings.Contains(endpoint, "@") {
				hint = "write special characters of a password as %xx, or set " + PasswordEnv
			}
			return c, process.Hintf(hint, "use etcd: %q is not a URL such as http://127.0.0.1:2379", process.Redact(endpoint))
		}
		if err := c.take(u.User); err != nil {
			return c, err
		}
		u.User = nil
		schemes[u.Scheme] = true
		endpoints[i] = strings.TrimSuffix(u.String(), "/")
	}
	c.Endpoints = endpoints
	return c, c.check(schemes)
}

// take takes over what one endpoint says about the user.
func (c *Config) take(info *url.Userinfo) error {
	if info == nil {
		return nil
	}
	password, _ := info.Password()
	if c.User != "" && c.User != info.Username() || c.Password != "" && password != "" && c.Password != password {
		return process.Hintf("name the user once, with --etcd-user, and the password in "+PasswordEnv,
			"use one user for all endpoints of etcd: they name several users or passwords")
	}
	c.User, c.Password = info.Username(), cmp.Or(password, c.Password)
	return nil
}

func (c *Config) check(schemes map[string]bool) error {
	switch {
	case len(schemes) > 1:
		return process.Hintf("APISIX wants one scheme for the whole cluster", "use etcd at %s: some endpoints are http and some https", c)
	case c.User != "" && c.Password == "":
		return process.Hintf("set "+PasswordEnv, "log in to etcd as %s: no password given", c.User)
	case c.User == "":
		c.Password = "" // set in the environment for another etcd
	}
	if (c.Cert == "") != (c.Key == "") {
		return process.Hintf("pass both --etcd-cert and --etcd-key", "use a client certificate for etcd: its certificate or its key is missing")
	}
	if c.CACert+c.Cert != "" && !schemes["https"] {
		return process.Hintf("write the endpoints as https://, or leave the certificates out", "use certificates for the etcd at %s: it is not https", c)
	}
	return nil
}

// tlsConfig reads the certificates.
func (c Config) tlsConfig() (*tls.Config, error) {
	t := &tls.Config{}
	if c.CACert != "" {
		pem, err := process.ReadPath(c.CACert)
		if err != nil {
			return nil, fmt.Errorf("read the authorities of etcd's certificate: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read the authorities of etcd's certificate: %s holds no PEM certificate", c.CACert)
		}
	}
	if c.Cert != "" {
		cert, err := process.ReadPath(c.Cert)
		key, keyErr := process.ReadPath(c.Key)
		if err = errors.Join(err, keyErr); err != nil {
			return nil, fmt.Errorf("read the client certificate for etcd: %w", err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("read the client certificate for etcd: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}
