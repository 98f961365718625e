package rival

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chert-http/chert/lab/child"
)

// Spec says how to start one server.
type Spec struct {
	Name string
	// Program must be installed; empty for the servers the lab builds itself.
	Program string
	// Go: written in Go, in a package of cmd, with all that package serve lists. The others only have answers that need
	// no code of ours: "/" and "/users/USER/posts/POST".
	Go bool
	// command makes the command line of a server. It may write files into the place's folder.
	command  func(place) (child.Command, error)
	binaries string // folder of the built programs
}

// place is where a server runs.
type place struct {
	binaries    string // folder of the built programs
	dir         string // the server's own, removed when it stops
	addr        string // to listen on
	cores       int    // how many it has
	connections int    // how many it must be able to hold
}

// specs is the table of all known servers.
var specs = []Spec{
	goServer("chert"),
	goServer("chertdirect"),
	goServer("nethttp"),
	goServer("fasthttp"),
	goServer("hertz"),
	{Name: "nginx", Program: "nginx", command: nginx},
	{Name: "h2o", Program: "h2o", command: h2o},
}

// cmd is the path of the packages of the servers written in Go, without their names.
const cmd = "github.com/chert-http/chert/lab/cmd/"

// Names lists the known servers.
func Names() []string {
	var names []string
	for _, s := range specs {
		names = append(names, s.Name)
	}
	return names
}

// Default lists the rivals of a server: all others, or only those written in Go. Those that are not installed are left
// out; skipped says why.
func Default(server string, onlyGo bool) (names, skipped []string) {
	for _, s := range specs {
		if s.Name == server || onlyGo && !s.Go {
			continue
		}
		if err := s.installed(); err != nil {
			skipped = append(skipped, fmt.Sprintf("without %s: %v", s.Name, err))
			continue
		}
		names = append(names, s.Name)
	}
	return names, skipped
}

// Open finds servers by name. Those written in Go are built in dir.
func Open(ctx context.Context, dir string, names []string) ([]Spec, error) {
	var found []Spec
	for _, name := range names {
		i := slices.IndexFunc(specs, func(s Spec) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no server %q; known are %s", name, strings.Join(Names(), ", "))
		}
		spec := specs[i]
		spec.binaries = dir
		if err := spec.installed(); err != nil {
			return nil, err
		}
		found = append(found, spec)
	}
	for _, spec := range found {
		if !spec.Go {
			continue
		}
		if err := child.Build(ctx, filepath.Join(dir, spec.Name), cmd+spec.Name); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// installed is nil if the server's program is there; the error names the package it comes in.
func (s Spec) installed() error {
	if s.Program == "" {
		return nil
	}
	_, err := child.Find(s.Program)
	return err
}
