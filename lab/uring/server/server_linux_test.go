package main

import (
	"testing"

	"github.com/chert-http/chert/lab/rival"
	"github.com/chert-http/chert/lab/stages/proof"
	"github.com/chert-http/chert/lab/uring"
)

func TestServer(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	var specs []rival.Spec
	for _, io := range []string{"epoll", "ring", "defer", "single"} {
		specs = append(specs, rival.Program(io, "uring/server", "--io", io), rival.Program(io+"-held", "uring/server", "--io", io, "--held"))
	}
	specs, err := rival.Ready(t.Context(), t.TempDir(), specs)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range specs {
		t.Run(spec.Name, func(t *testing.T) {
			if err := uring.Available(); err != nil && spec.Name != "epoll" && spec.Name != "epoll-held" {
				t.Skip(err)
			}
			s, err := rival.Start(t.Context(), spec, rival.Room{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			proof.Server(t, s.Addr, true)
		})
	}
}
