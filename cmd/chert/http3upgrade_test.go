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

	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/http3client"
)

// No request over HTTP/3 fails while processes follow each other, on connections that clients keep and on new ones.
func TestHTTP3Upgrade(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	cert, key := ca.server(t.TempDir(), "cert", "127.0.0.1")
	u := startUpgradable(t, "serve", "www", "--listen", freeport.Both(t), "--tls-cert", cert, "--tls-key", key, "--http3")
	cfg := &tls.Config{RootCAs: ca.pool}
	stop := make(chan struct{})
	var clients sync.WaitGroup
	const kept, each = 0, 1
	var answers [2]atomic.Int64
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
	for i := range 4 {
		c, tr := newHTTP3(t, cfg)
		kind := i % len(answers)
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := ask(c); http3client.Own(err) {
					continue
				} else if err != nil {
					t.Errorf("client of kind %d: %v", kind, err)
					return
				}
				if kind == each {
					tr.CloseIdleConnections()
				}
				answers[kind].Add(1)
			}
		})
	}
	enough := func() {
		t.Helper()
		for kind := range answers {
			want := answers[kind].Load() + 50
			until(t, func() bool { return t.Failed() || answers[kind].Load() >= want })
		}
	}
	enough()
	pid := 0
	for range 5 {
		pid = u.upgrade()
		enough()
	}
	close(stop)
	clients.Wait()
	t.Logf("%d answers on connections that were kept, %d on new ones", answers[kept].Load(), answers[each].Load())
	u.end(pid)
}
