package apisixtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"armrepro/embed"
	"armrepro/proxycheck/etcdhttp"
)

// EtcdPassword is root's in an etcd that SecureEtcd starts. YAML, JSON and URLs
// have to escape it.
const EtcdPassword = `p@ss"w\o: #{}%/x`

// SecureEtcd starts an etcd that wants a user and a password: root may do
// everything, limited what concerns keys below /armrepro-, and none nothing.
// The passwords of the last two are their names.
func SecureEtcd(t testing.TB) (endpoint string) {
	t.Helper()
	s, err := embed.Start(context.Background(), embed.Config{Listen: "127.0.0.1:0", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	client, err := etcdhttp.New(etcdhttp.Config{Endpoints: []string{s.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, call := range []struct {
		path string
		body map[string]any
	}{
		{"user/add", map[string]any{"name": "root", "password": EtcdPassword}},
		{"user/grant", map[string]any{"user": "root", "role": "root"}},
		{"role/add", map[string]any{"name": "armrepro"}},
		{"role/grant", map[string]any{"name": "armrepro", "perm": map[string]any{
			"permType": "READWRITE", "key": []byte("/armrepro-"), "range_end": []byte("/armrepro."),
		}}},
		{"user/add", map[string]any{"name": "limited", "password": "limited"}},
		{"user/grant", map[string]any{"user": "limited", "role": "armrepro"}},
		{"user/add", map[string]any{"name": "none", "password": "none"}},
		{"enable", map[string]any{}},
	} {
		if err := client.Call(context.Background(), "/v3/auth/"+call.path, call.body, nil); err != nil {
			t.Fatal(err)
		}
	}
	return s.Endpoint()
}

// TLSInFront lets an etcd be reached by https, under the name localhost, from
// clients with a certificate. It returns how.
func TLSInFront(t testing.TB, endpoint string) etcdhttp.Config {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1 // watches
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	s := httptest.NewUnstartedServer(proxy)
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, Certificates: []tls.Certificate{pair}}
	s.Config.ErrorLog = proxy.ErrorLog
	s.StartTLS()
	t.Cleanup(s.Close)
	return etcdhttp.Config{
		Endpoints: []string{strings.Replace(s.URL, "127.0.0.1", "localhost", 1)},
		CACert:    cert, Cert: cert, Key: key,
	}
}

// writeCertificate writes a certificate that is its own authority, for servers
// and clients, and its key.
func writeCertificate(t testing.TB, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"},
		IsCA:     true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: cert},
		keyFile:  {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
