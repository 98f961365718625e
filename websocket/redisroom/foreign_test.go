package redisroom

import (
	"fmt"
	"testing"

	"github.com/chert-http/chert/internal/testing/redistest"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// A set whose key is something else does not have others told again and again, nor is what it lacks kept.
func TestForeignSet(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	a := start(t, srv.URL(), Options{})
	srv.Must("SET", a.presence.key(atRoom+"lobby"), "x")
	for n := range 5 {
		c := a.client(fmt.Sprint("room=lobby&user=lost", n))
		c.wants("joined")
		c.Close()
		a.client(fmt.Sprint("room=other&user=u", n)).wants("joined")
	}
	servertest.Eventually(t, "Redis to know the others", func() bool {
		return srv.Must("HLEN", a.presence.key(atRoom+"other")) == "5"
	})
	servertest.Eventually(t, "nothing to be left", func() bool {
		a.presence.mu.Lock()
		defer a.presence.mu.Unlock()
		return len(a.presence.dirty) == 0 && len(a.presence.have) == 1
	})
	if err := a.presence.flush(); err != nil {
		t.Error(err)
	}
}
