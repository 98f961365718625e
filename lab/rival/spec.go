package rival

import (
	"context"
	"fmt"
	"os"
	"path"
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
	Does    Trade
	// Chert says that it is built from chert's source, of which there are other revisions.
	Chert bool
	// Closes says that it closes every connection after one answer, whatever the client wants.
	Closes bool
	// Present is the name of the same server of the present source, if this one is of another revision.
	Present string
	// source is the folder of the program's package, below the lab's; empty for an installed one.
	source string
	// command makes the command line of a server. It may write files into the place's folder.
	command func(place) (child.Command, error)
	binary  string // the built program
}

// Trade is what servers can do: a set of bits.
type Trade uint16

const (
	// Answers: "/" and "/users/USER/posts/POST", which need no code of ours.
	Answers Trade = 1 << iota
	// Code: all that package serve lists.
	Code
	// Files: those of a folder, Room.Files. A server with other trades too then serves nothing but them.
	Files
	// Streams: large bodies in both directions, which package handler has.
	Streams
	// H2: HTTP/2 over TLS, at the server's second address.
	H2
	// H3: HTTP/3 at the UDP port of the second address.
	H3
	// Events: streams of events, at /debug/events.
	Events
	// Sockets: WebSockets, which package handler has.
	Sockets
	// Sites: files, by "chert serve" with a configuration.
	Sites
	// Proxy: what an origin has, by a reverse proxy: "/" to any method, and the files of Room.Files.
	Proxy
)

// Has reports whether t includes all of wanted.
func (t Trade) Has(wanted Trade) bool { return t&wanted == wanted }

// place is where a server runs.
type place struct {
	binary      string // the built program; empty for an installed one
	dir         string // the server's own, removed when it stops
	addr        string // to listen on
	cores       int    // how many it has
	connections int    // how many it must be able to hold
	files       string // folder to serve; empty for the usual answers
	tls         string // to listen on with TLS, too; empty for none
	origin      string // of a proxy
}

// specs is the table of all known servers.
var specs = []Spec{
	chertServer("chert", Answers|Code|Streams|H2),
	chertServer("chertgoroutines", Streams|H2),
	chertServer("chertdirect", Answers|Code|H2),
	chertServer("chertevents", Events),
	chertServer("chertws", Sockets),
	chert3("chert3", "plain", Answers|Code|Streams|Files),
	chert3("chert3direct", "direct", Answers|Files),
	chert3("chert3events", "events", Events),
	goServer("quicgo", Answers|Code|Streams|Files|Events|H2|H3),
	goServer("nethttp", Answers|Code|Streams|H2|Events),
	goServer("fasthttp", Answers|Code),
	goServer("hertz", Answers|Code),
	chertServer("chertfiles", Files|H2),
	chertServer("chertfilesplain", Files|H2),
	goServer("nethttpfiles", Files|H2),
	site("chertserve", siteConf),
	site("chertsite", fullSiteConf),
	chertProxy("chertproxy"),
	proxyServer("nethttpproxy"),
	{Name: "nginxproxy", Program: "nginx", Does: Proxy | H2, command: nginxProxy},
	{Name: "haproxy", Program: "haproxy", Does: Proxy | H2, command: haproxy},
	socketServer("gorilla"),
	socketServer("gws"),
	socketServer("coder"),
	socketServer("gobwas"),
	{Name: "nginx", Program: "nginx", Does: Answers | Files | H2, command: nginx},
	{Name: "nginxnopush", Program: "nginx", Does: Files, command: nginxNopush},
	{Name: "h2o", Program: "h2o", Does: Answers | Files | H2, command: h2o},
	{Name: "caddy", Does: Files, source: "caddy", command: caddy},
	{Name: "caddy3", Does: Answers | Files | H2 | H3, source: "caddy", command: caddy},
}

// Names lists the known servers.
func Names() []string {
	var names []string
	for _, s := range specs {
		names = append(names, s.Name)
	}
	return names
}

// Default lists the rivals of a server: all others that do what is wanted. Those that are not installed are left out;
// skipped says why.
func Default(ctx context.Context, server string, wanted Trade) (names, skipped []string) {
	for _, s := range specs {
		// Those of HTTP/3 would be there twice for all else.
		if s.Name == server || !s.Does.Has(wanted) || s.Does.Has(H3) && !wanted.Has(H3) {
			continue
		}
		if err := s.Available(ctx); err != nil {
			skipped = append(skipped, fmt.Sprintf("without %s: %v", s.Name, err))
			continue
		}
		names = append(names, s.Name)
	}
	return names, skipped
}

// Find finds a server by name. It cannot be started yet.
func Find(name string) (Spec, error) {
	i := slices.IndexFunc(specs, func(s Spec) bool { return s.Name == name })
	if i < 0 {
		return Spec{}, fmt.Errorf("no server %q; known are %s", name, strings.Join(Names(), ", "))
	}
	return specs[i], nil
}

// Open finds servers by name and makes them ready to start. Those that are built from source are built in dir.
func Open(ctx context.Context, dir string, names []string) ([]Spec, error) {
	var found []Spec
	for _, name := range names {
		spec, err := Find(name)
		if err != nil {
			return nil, err
		}
		found = append(found, spec)
	}
	return Ready(ctx, dir, found)
}

// Ready makes servers ready to start: it builds in dir those that are built from source. Several of one folder are one
// program, which is built once for each dir.
func Ready(ctx context.Context, dir string, specs []Spec) ([]Spec, error) {
	ready := slices.Clone(specs)
	for i, spec := range ready {
		if spec.Program != "" {
			if _, err := child.Find(spec.Program); err != nil {
				return nil, err
			}
		}
		if spec.source != "" {
			ready[i].binary = filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(spec.source, cmd+"/"), "/", "-"))
		}
	}
	for _, spec := range ready {
		if spec.source == "" {
			continue
		}
		if _, err := os.Stat(spec.binary); err == nil {
			continue
		}
		if err := child.Build(ctx, spec.binary, spec.source); err != nil {
			return nil, err
		}
	}
	return ready, nil
}

// Available is nil if the server's program is there, or what it is built from; the error of an installed one names the
// package it comes in.
func (s Spec) Available(ctx context.Context) error {
	if s.Program != "" {
		_, err := child.Find(s.Program)
		return err
	}
	if path.Dir(s.source) == cmd {
		return nil // what they need, the lab needs
	}
	return child.Fetch(ctx, s.source)
}
