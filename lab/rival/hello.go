package rival

import "github.com/chert-http/chert/lab/child"

// helloSpec is one of the servers in cmd/hello. GOMAXPROCS matches its one core: left to itself the runtime would count
// the cores too, but only those it sees.
func helloSpec(server, binary string) Spec {
	return Spec{
		Name:  server,
		Debug: true,
		command: func(_, addr string) (child.Command, error) {
			return child.Command{
				Args: []string{binary, "--server", server, "--listen", addr},
				Env:  []string{"GOMAXPROCS=1"},
			}, nil
		},
	}
}
