package proxy

import (
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/autobahn"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// TestAutobahn runs the fuzzing client of Autobahn|Testsuite through a proxy, without and with TLS to the server.
func TestAutobahn(t *testing.T) {
	command := autobahn.Command(t)
	alike(t, func(t *testing.T, e chert.Engine) {
		overEach(t, func(t *testing.T, secure bool) {
			t.Parallel()
			o := engines.StartOn(t, &chert.Server{Handler: autobahn.Echo(t)}, over(t, secure, servertest.ListenTCP(t)))
			s := &setup{}
			s.over(t, secure)
			autobahn.Run(t, command, s.start(t, e, o.ListenAddr).ListenAddr)
		})
	})
}
