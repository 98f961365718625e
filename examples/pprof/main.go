// Command pprof serves net/http/pprof's profiles of itself with chert:
//
//	go tool pprof http://127.0.0.1:8080/debug/pprof/profile?seconds=5
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/http/pprof"

	"github.com/chert-http/chert"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	srv := &chert.Server{Handler: handler()}
	l, err := srv.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/debug/pprof/\n", l.Addr())
	if err := chert.Run(context.Background(), srv, 0, func() error { return srv.Serve(l) }); err != nil {
		log.Fatal(err)
	}
}

// handler names its routes: importing the package for its side effect would
// publish profiles on http.DefaultServeMux.
func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.Handle("/", http.RedirectHandler("/debug/pprof/", http.StatusFound))
	return mux
}
