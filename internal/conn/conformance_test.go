//go:build linux || darwin

package conn_test

import (
	"testing"

	"github.com/chert-http/chert/internal/conn/conntest"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, pair := range map[string]servertest.Pair{"tcp": servertest.TCP, "unix": servertest.Unix} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conntest.Test(t, conntest.OnLoop(pair))
		})
	}
}
