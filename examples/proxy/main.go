// Command proxy passes requests on to another server, with chert in front of
// httputil.ReverseProxy. WebSockets pass too.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/chert-http/chert"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "where to listen")
	to := flag.String("to", "http://127.0.0.1:8081", "the server to pass requests to")
	flag.Parse()
	target, err := url.Parse(*to)
	if err != nil {
		log.Fatal(err)
	}
	if target.Scheme != "http" && target.Scheme != "https" || target.Host == "" {
		log.Fatalf("-to %s: want an address such as http://127.0.0.1:8081", *to) // else each response would be 502
	}
	srv := &chert.Server{Handler: handler(target, nil, nil)}
	l, err := srv.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/ -> %s\n", l.Addr(), target)
	if err := chert.Run(context.Background(), srv, 0, func() error { return srv.Serve(l) }); err != nil {
		log.Fatal(err)
	}
}

// handler logs to l; the transport and l may be nil for the defaults.
func handler(target *url.URL, transport http.RoundTripper, l *log.Logger) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.SetXForwarded()
		},
		Transport:     transport,
		FlushInterval: -1, // pass on each piece as it comes
		ErrorLog:      l,
	}
}
