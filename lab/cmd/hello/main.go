// Command hello is the server under test: the smallest handler that still is one, on any of the servers written in Go.
//
//	GET /             "Hello, World!"
//	GET /debug/stats  goroutines and memory, as JSON
//	GET /debug/gc     collects garbage and gives free memory back to the system
package main

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
)

// servers maps a name to a function that serves on an address and only returns an error. Each file beside this one
// enters its own.
var servers = map[string]func(addr string, h http.Handler) error{}

func main() {
	names := strings.Join(slices.Sorted(maps.Keys(servers)), "|")
	server := flag.String("server", "chert", "the server to run: "+names)
	listen := flag.String("listen", "127.0.0.1:8080", "address to listen on")
	flag.Parse()

	serve, ok := servers[*server]
	if !ok {
		fmt.Fprintf(os.Stderr, "hello: no server %q; there are %s\n", *server, names)
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, "hello:", serve(*listen, handler()))
	os.Exit(1)
}
