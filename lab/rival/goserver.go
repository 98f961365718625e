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
	spec := Program(name, cmd+"/"+name)
	spec.Does = does
	return spec
}

// chert3 is chert with package http3. All of them are one program.
func chert3(name, as string, does Trade) Spec {
	spec := Program(name, cmd+"/chert3", "--as", as)
	spec.Does, spec.Chert = does|H2|H3, true
	return spec
}

// socketServer is net/http with a library for WebSockets. All of them are one program.
func socketServer(library string) Spec {
	spec := Program(library, cmd+"/wsnethttp", "--library", library)
	spec.Does = Sockets
	return spec
}

// Program is a server written in Go that is not in the table: its package is in a folder below the lab's, and it is
// started with further arguments. It must have the flag --listen, and --files if it is to serve files.
func Program(name, folder string, further ...string) Spec {
	return Spec{
		Name:   name,
		source: folder,
		command: func(p place) (child.Command, error) {
			args := append([]string{p.binary, "--listen", p.addr}, further...)
			if p.files != "" {
				args = append(args, "--files", p.files)
			}
			if p.tls != "" {
				args = append(args, "--tls", p.tls)
			}
			return child.Command{Args: args, Env: []string{"GOMAXPROCS=" + strconv.Itoa(p.cores)}}, nil
		},
	}
}
