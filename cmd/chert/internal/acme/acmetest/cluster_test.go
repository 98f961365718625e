package acmetest

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/acme"
	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/redistest"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// Instances that start at the same time order a certificate once, and the authority's challenge
// is answered by one that has not ordered it.
func TestCluster(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	const instances = 20
	names := []string{"a.example.com", "b.example.com"}
	answers := freeport.Port(t)
	ca := startPebble(t, freeport.Port(t), answers, 24*time.Hour)
	manager := func(port string, key byte) *servertest.Log {
		m, said := server(t, acme.Options{Storage: t.TempDir(), CA: ca.url, Roots: ca.trusted(t), Host: "127.0.0.1",
			TLSPort: number(t, port), Redis: srv.URL(), Key: [32]byte{key}})
		m.Manage(names)
		return said
	}
	var logs []*servertest.Log
	var ports []string
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range instances {
		port := answers
		if i > 0 {
			port = freeport.Port(t)
		}
		all.Go(func() {
			said := manager(port, 1)
			mu.Lock()
			defer mu.Unlock()
			logs, ports = append(logs, said), append(ports, port)
		})
	}
	all.Wait()
	for _, name := range names {
		serial := ""
		for _, port := range ports {
			until(t, "a certificate of "+name, func() bool {
				c, err := get(port, name, ca.roots)
				if err != nil {
					return false
				}
				if got := c.SerialNumber.String(); serial == "" {
					serial = got
				} else if got != serial {
					t.Errorf("%s: more than one certificate", name)
				}
				return true
			})
		}
		got := 0
		for _, said := range logs {
			got += strings.Count(said.String(), "got the certificate for "+name)
		}
		if got != 1 {
			t.Errorf("%s: %d instances have got a certificate", name, got)
		}
	}
	// Nothing in Redis is readable, nor with another key.
	if text := srv.Must("HGETALL", "chert:{acme}:files"); strings.Contains(text, "PRIVATE KEY") || strings.Contains(text, "BEGIN") {
		t.Error("Redis has keys that are not encrypted")
	}
	said := manager(freeport.Port(t), 2)
	until(t, "a line about the secret", func() bool { return strings.Contains(said.String(), "another secret") })
	if keys := srv.Must("KEYS", "chert:{acme}:lock:*"); keys != "" {
		until(t, "locks to be removed", func() bool { return srv.Must("KEYS", "chert:{acme}:lock:*") == "" })
	}
}
