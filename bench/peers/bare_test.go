package main

import (
	"net/http"
	"testing"
)

// TestBareServer answers on one connection, again and again.
func TestBareServer(t *testing.T) {
	t.Parallel()
	at, err := addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	s, err := startBare(t.Context(), at[0])
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	for range 100 {
		if err := get(t.Context(), client, url(at[0])); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}
