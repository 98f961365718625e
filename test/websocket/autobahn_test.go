package websocket

import (
	"net/http"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/autobahn"
)

// TestAutobahn runs the fuzzing client of Autobahn|Testsuite.
func TestAutobahn(t *testing.T) {
	command := autobahn.Command(t)
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		autobahn.Run(t, command, start(t, fresh(autobahn.Echo(t))).ListenAddr)
	})
}
