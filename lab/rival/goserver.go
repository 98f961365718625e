package rival

import (
	"path/filepath"
	"strconv"

	"github.com/chert-http/chert/lab/child"
)

// goServer is the server of a package in cmd. GOMAXPROCS matches its cores: left to itself the runtime would count the
// cores too, but only those it sees.
func goServer(name string) Spec {
	return Spec{
		Name: name,
		Go:   true,
		command: func(p place) (child.Command, error) {
			return child.Command{
				Args: []string{filepath.Join(p.binaries, name), "--listen", p.addr},
				Env:  []string{"GOMAXPROCS=" + strconv.Itoa(p.cores)},
			}, nil
		},
	}
}
