package process

import (
	"errors"
	"strings"
	"testing"
)

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

func TestMask(t *testing.T) {
	t.Parallel()
	const secret = `a'b"c d/`
	for _, said := range []string{`a'b"c d/`, `a''b"c d/`, `a'b\"c d/`, "a%27b%22c+d%2F", "a%27b%22c%20d%2F"} {
		if got := Mask(errors.New("x "+said+" y"), "", secret).Error(); got != "x *** y" {
			t.Errorf("%s becomes %s", said, got)
		}
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("http://u:secret@host:1")
	f.Add("u:secret//@host")
	f.Fuzz(func(t *testing.T, host string) {
		if got := Redact("http://u:secret@" + host); strings.Contains(strings.ReplaceAll(got, host, ""), "secret") {
			t.Errorf("%q", got)
		}
	})
}
