package rival

import (
	"strconv"

	"github.com/chert-http/chert/lab/child"
)

// cmd is the folder of the servers written in Go.
const cmd = "cmd"

// chertServer is a goServer that chert serves.
func chertServer(name string, does Trade) Spec {
	spec := goServer(name, does)
	spec.Chert = true
	return spec
}

// goServer is the server of a package in cmd. GOMAXPROCS matches its cores: left to itself the runtime would count the
// cores too, but only those it sees.
func goServer(name string, does Trade) Spec {
	return Spec{
		Name:   name,
		Does:   does,
		source: cmd + "/" + name,
		command: func(p place) (child.Command, error) {
			args := []string{p.binary, "--listen", p.addr}
			if p.files != "" {
				args = append(args, "--files", p.files)
			}
			return child.Command{Args: args, Env: []string{"GOMAXPROCS=" + strconv.Itoa(p.cores)}}, nil
		},
	}
}
