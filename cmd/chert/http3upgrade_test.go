//go:build linux || darwin

package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// Clients of HTTP/3 lose their connections at an upgrade and come back.
func TestHTTP3Upgrade(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	cert, key := ca.server(t.TempDir(), "cert", "127.0.0.1")
	u := startUpgradable(t, "serve", "www", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--http3")
	cfg := &tls.Config{RootCAs: ca.pool}
	// A client may come back to the old process, shortly before the new one reads the port, and to a handshake that
	// the old one ends.
	const tries = 2
	stop := make(chan struct{})
	var clients sync.WaitGroup
	var answers, again atomic.Int64
	ask := func(c *http.Client) error {
		res, err := c.Get(u.urls[0] + "f")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err == nil && (res.Proto != "HTTP/3.0" || string(b) != "body") {
			err = fmt.Errorf("%s %s %q", res.Proto, res.Status, b)
		}
		return err
	}
	for range 3 {
		c, tr := newHTTP3(t, cfg)
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				err := ask(c)
				for range tries {
					if err != nil {
						again.Add(1)
						tr.CloseIdleConnections()
						err = ask(c)
					}
				}
				if err != nil {
					t.Errorf("asked again: %v", err)
					return
				}
				answers.Add(1)
			}
		})
	}
	enough := func() {
		t.Helper()
		want := answers.Load() + 100
		until(t, func() bool { return t.Failed() || answers.Load() >= want })
	}
	enough()
	pid := 0
	for range 2 {
		pid = u.upgrade()
		fresh, _ := newHTTP3(t, cfg)
		if err := ask(fresh); err != nil {
			t.Errorf("after the upgrade: %v", err)
		}
		enough()
	}
	close(stop)
	clients.Wait()
	t.Logf("%d answers, %d requests were sent again", answers.Load(), again.Load())
	u.end(pid)
}
