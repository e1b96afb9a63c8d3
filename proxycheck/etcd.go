package proxycheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"

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
			return process.Hintf("name etcd in --etcd by a name that its certificate holds, such as localhost",
				"use the etcd at %s: APISIX can't check a certificate against the address %s", endpoint, u.Hostname())
		}
	}
	if cfg.Cert != "" && !in.OpenResty.has("apisix-nginx-module") {
		return process.Hintf("install apisix-runtime, or use an etcd that asks for no certificate",
			"use a client certificate for etcd: the OpenResty %s was built without apisix-nginx-module, which sends it", in.OpenResty.Path)
	}
	return nil
}

// keepInEtcd says that the routes are kept in etcd under a prefix that outlives the
// run, or where none is given makes one up.
func (c *core) keepInEtcd() {
	etcd, prefix := c.cfg.Etcd, c.cfg.EtcdPrefix
	if prefix == "" {
		c.cfg.EtcdPrefix = ownEtcdPrefix + randomHex(4)
		return
	}
	c.store = etcd.String() + prefix
	c.removal = func(id string) string { return etcdctlDelete(etcd, prefix+"/routes/"+id) }
}

// ownKeys are the keys that a run puts under a prefix of its own into an etcd
// that outlives it.
type ownKeys struct {
	Etcd   Etcd
	Prefix string
	// mark is for the next run, should this one be killed.
	mark *process.Folder
}

// markKeys marks the keys that are to be put under a prefix of our own, unless they go
// with their etcd.
func (c *core) markKeys() (err error) {
	if c.store == "" && !c.cfg.EtcdEnds {
		c.keys, err = newOwnKeys(c.cfg)
	}
	return err
}

func newOwnKeys(cfg Config) (*ownKeys, error) {
	k := &ownKeys{Etcd: cfg.Etcd, Prefix: cfg.EtcdPrefix}
	note, err := json.Marshal(k)
	if err == nil {
		k.mark, err = newMark(cfg.RunDir, keysKind, string(note), k.left())
	}
	if err != nil {
		return nil, fmt.Errorf("mark the keys in etcd as ours: %w", err)
	}
	return k, nil
}

func (k *ownKeys) left() process.Left {
	return process.Left{
		What: fmt.Sprintf("keys under %s from the etcd at %s", k.Prefix, k.Etcd),
		How:  etcdctlDelete(k.Etcd, "--prefix", k.Prefix+"/"),
	}
}

// remove removes the keys. Where that fails, the mark stays for the next run.
// Without keys there is nothing to do.
func (k *ownKeys) remove() error {
	if k == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	client, err := etcdhttp.New(k.Etcd)
	if err == nil {
		defer client.Close()
		err = client.Call(ctx, "/v3/kv/deleterange", etcdhttp.Under(k.Prefix+"/"), nil)
	}
	if err != nil {
		return errors.Join(k.left().Because(err), k.mark.Leave())
	}
	return k.mark.Remove()
}

// abandon is remove where putting the keys has failed: an etcd that isn't there
// has none.
func (k *ownKeys) abandon() error {
	err := k.remove()
	if errors.Is(err, syscall.ECONNREFUSED) {
		return k.mark.Remove()
	}
	return err
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
