package rival

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/chert-http/chert/lab/child"
)

// Spec says how to start one server.
type Spec struct {
	Name string
	// Program must be installed; empty for the servers the lab builds itself.
	Program string
	// Debug: the server has /debug/stats and /debug/gc, as cmd/hello does.
	Debug bool
	// command makes the command line of a server that is to listen on addr. It may write files into dir, which is the
	// server's own and is removed when it stops.
	command func(dir, addr string) (child.Command, error)
}

// helloPackage is the Go program that holds all servers written in Go.
const helloPackage = "github.com/chert-http/chert/lab/cmd/hello"

// specs makes the table of all known servers; hello is the path of the built helloPackage.
func specs(hello string) []Spec {
	return []Spec{
		helloSpec("chert", hello),
		helloSpec("nethttp", hello),
		{Name: "nginx", Program: "nginx", command: nginx},
	}
}

// Names lists the known servers.
func Names() []string {
	var names []string
	for _, s := range specs("") {
		names = append(names, s.Name)
	}
	return names
}

// Open finds servers by name and makes ready what they share: if one is written in Go, the program is built in dir.
func Open(ctx context.Context, dir string, names []string) ([]Spec, error) {
	hello := filepath.Join(dir, "hello")
	var found []Spec
	build := false
	for _, name := range names {
		spec, ok := lookup(specs(hello), name)
		if !ok {
			return nil, fmt.Errorf("no server %q; known are %s", name, strings.Join(Names(), ", "))
		}
		if spec.Program == "" {
			build = true
		} else if _, err := child.Find(spec.Program); err != nil {
			return nil, err
		}
		found = append(found, spec)
	}
	if build {
		_, err := child.Run(ctx, child.Command{Args: []string{"go", "build", "-o", hello, helloPackage}, Core: child.AnyCore})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func lookup(all []Spec, name string) (Spec, bool) {
	for _, s := range all {
		if s.Name == name {
			return s, true
		}
	}
	return Spec{}, false
}
