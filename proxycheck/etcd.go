package proxycheck

import (
	"context"
	"fmt"
	"net"
	"net/url"

	"armrepro/proxycheck/etcdhttp"
	"armrepro/proxycheck/process"
)

// Etcd says how to reach an etcd and as whom.
type Etcd = etcdhttp.Config

// EtcdPasswordEnv is the variable from which commands take the password of
// etcd's user.
const EtcdPasswordEnv = etcdhttp.PasswordEnv

// ownEtcdPrefix begins the prefix of a run that was given none.
const ownEtcdPrefix = "/armrepro-"

// CheckEtcd makes sure that a gateway can keep its keys below prefix in this
// etcd, and returns its version. An empty prefix stands for one of our own.
func CheckEtcd(ctx context.Context, cfg Etcd, prefix string) (version string, err error) {
	client, err := etcdhttp.New(cfg)
	if err != nil {
		return "", err
	}
	defer client.Close()
	if prefix == "" {
		prefix = ownEtcdPrefix
	}
	return client.Check(ctx, prefix)
}

// checkForAPISIX looks for what APISIX, unlike this program, can't do.
func checkForAPISIX(cfg Etcd, in *Install) error {
	for _, endpoint := range cfg.Endpoints {
		if u, err := url.Parse(endpoint); err == nil && u.Scheme == "https" && net.ParseIP(u.Hostname()) != nil {
			return &HintError{
				Err:    fmt.Errorf("use the etcd at %s: APISIX can't check a certificate against the address %s", endpoint, u.Hostname()),
				Advice: "name etcd in --etcd by a name that its certificate holds, such as localhost",
			}
		}
	}
	if cfg.Cert != "" && !in.OpenResty.has("apisix-nginx-module") {
		return &HintError{
			Err:    fmt.Errorf("use a client certificate for etcd: the OpenResty %s was built without apisix-nginx-module, which sends it", in.OpenResty.Path),
			Advice: "install apisix-runtime, or use an etcd that asks for no certificate",
		}
	}
	return nil
}

// keepIn says that the routes are kept in etcd under a prefix that outlives the
// run, unless the prefix is empty.
func (c *core) keepIn(cfg Etcd, prefix string) {
	if prefix == "" {
		return
	}
	c.store = cfg.String() + prefix
	c.removal = func(id string) string { return etcdctlDelete(cfg, prefix+"/routes/"+id) }
}

// removeKeys removes every key under prefix from etcd.
func removeKeys(cfg Etcd, prefix string) error {
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	client, err := etcdhttp.New(cfg)
	if err == nil {
		defer client.Close()
		err = client.Call(ctx, "/v3/kv/deleterange", etcdhttp.Under(prefix+"/"), nil)
	}
	if err != nil {
		return &LeftBehind{
			Left: []Left{{
				What: fmt.Sprintf("keys under %s from the etcd at %s", prefix, cfg),
				How:  etcdctlDelete(cfg, "--prefix", prefix+"/"),
			}},
			Err: err,
		}
	}
	return nil
}

// etcdctlDelete is the command that removes keys. It asks for the password.
func etcdctlDelete(cfg Etcd, args ...string) string {
	line := []string{"etcdctl", "--endpoints=" + cfg.String()}
	for _, option := range []struct{ name, value string }{
		{"--user=", cfg.User}, {"--cacert=", cfg.CACert}, {"--cert=", cfg.Cert}, {"--key=", cfg.Key},
	} {
		if option.value != "" {
			line = append(line, option.name+option.value)
		}
	}
	return process.CommandLine(append(append(line, "del"), args...)...)
}
