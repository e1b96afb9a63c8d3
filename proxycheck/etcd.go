package proxycheck

import (
	"context"
	"fmt"

	"armrepro/proxycheck/etcdhttp"
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
		return fmt.Errorf("remove the keys of %s from etcd: %w", prefix, err)
	}
	return nil
}
