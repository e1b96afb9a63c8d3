package process

import "testing"

func TestWithoutSecrets(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"armrepro run --admin-key abc --etcd http://u:p@127.0.0.1:2379": "armrepro run --admin-key *** --etcd http://***@127.0.0.1:2379",
		"x --admin-key=abc -token t --API-PASSWORD p":                   "x --admin-key=*** -token *** --API-PASSWORD ***",
		"nginx: master process openresty -p /tmp/a -c conf/nginx.conf":  "nginx: master process openresty -p /tmp/a -c conf/nginx.conf",
		"curl https://a/b@c": "curl https://a/b@c",
		"--monkey business":  "--monkey ***",
		"":                   "",
	} {
		if got := WithoutSecrets(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
