package http3_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// A direct handler that is stuck has a line.
func TestSlowDirect(t *testing.T) {
	t.Parallel()
	stay := make(chan bool)
	release := sync.OnceFunc(func() { close(stay) })
	defer release()
	s := serve(t, &chert.Server{SlowHandler: 20 * time.Millisecond, Handler: direct.HandlerFunc(func(x *direct.Exchange) {
		<-stay
		x.WriteString("hello")
	})})
	c := s.raw()
	e := c.open(true, headers(path(get, "/stuck")...))
	servertest.Eventually(t, "it is logged", func() bool { return strings.Contains(s.log.String(), ` (direct, handler)`) })
	if log := s.log.String(); !strings.Contains(log, `chert: GET "/stuck" from `+c.LocalAddr().String()+" has been running for ") {
		t.Error(log)
	}
	servertest.Eventually(t, "it is running", func() bool { return s.Stats().Running == 1 })
	release()
	if a := e.read(); a.body != "hello" {
		t.Errorf("%+v", a)
	}
	servertest.Eventually(t, "none is running", func() bool { return s.Stats().Running == 0 })
}
