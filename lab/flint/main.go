// Command flint is a server as one would write it on package net: a goroutine for each connection, or a pool of workers
// with a queue; a parser that makes strings; a limiter with a bucket for each address. With --engine nethttp or chert the
// same handlers run there, for comparison. TLS is served on the same port of 127.0.0.2.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/ratelimit"

	"github.com/chert-http/chert/lab/serve"
	"github.com/chert-http/chert/lab/work"
)

var (
	engine  = flag.String("engine", "naked", "naked: a goroutine for each connection; pool: workers; nethttp; chert")
	workers = flag.Int("workers", 100, "of a pool")
	queue   = flag.Int("queue", 1000, "connections that wait for a worker of a pool")
	limit   = flag.Int("limit", 0, "requests that an address has; 0: any number")
)

// slow is how long the slow handler takes, as if it asked a database.
const slow = 50 * time.Millisecond

func main() { serve.Main(run) }

func run(addr string) error {
	plain, secure, err := listen(addr)
	if err != nil {
		return err
	}
	switch *engine {
	case "naked", "pool":
		s := newServer(*limit)
		accept := s.naked
		if *engine == "pool" {
			accept = s.pool(*workers, *queue)
		}
		return first(func() error { return accept(plain) }, func() error { return accept(secure) })
	case "nethttp":
		h, err := handler(*limit)
		if err != nil {
			return err
		}
		s := &http.Server{Handler: h}
		return first(func() error { return s.Serve(plain) }, func() error { return s.Serve(secure) })
	case "chert":
		h, err := handler(*limit)
		if err != nil {
			return err
		}
		s := &chert.Server{Handler: h, MaxConns: -1}
		return first(func() error { return s.Serve(plain) }, func() error { return s.Serve(secure) })
	}
	return fmt.Errorf("no engine %q", *engine)
}

// listen opens the two ports.
func listen(addr string) (plain, secure net.Listener, err error) {
	if plain, err = net.Listen("tcp", addr); err != nil {
		return nil, nil, err
	}
	_, port, err := net.SplitHostPort(plain.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	certificate, err := selfSigned()
	if err != nil {
		return nil, nil, err
	}
	secure, err = tls.Listen("tcp", net.JoinHostPort(secureHost, port), &tls.Config{Certificates: []tls.Certificate{certificate}})
	return plain, secure, err
}

// secureHost is a second address of this machine: the lab gives a server only one port.
const secureHost = "127.0.0.2"

// first returns when one of them does.
func first(all ...func() error) error {
	failed := make(chan error, len(all))
	for _, f := range all {
		go func() { failed <- f() }()
	}
	return <-failed
}

// handler is the routes for net/http and chert.
func handler(limit int) (http.Handler, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { text(w, work.Hello) })
	mux.HandleFunc("GET /slow", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(slow)
		text(w, work.Hello)
	})
	mux.HandleFunc("GET /debug/stats", func(w http.ResponseWriter, _ *http.Request) {
		b, err := work.ProcessJSON()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Write(b)
	})
	if limit == 0 {
		return mux, nil
	}
	limited, err := ratelimit.New(&ratelimit.Options{Rules: []ratelimit.Rule{
		{Name: "address", Rate: ratelimit.Rate{Count: 1, Per: time.Minute, Burst: int64(limit)}}}})
	if err != nil {
		return nil, err
	}
	return limited(mux), nil
}

func text(w http.ResponseWriter, s string) {
	w.Header().Set("Content-Type", "text/plain")
	io.WriteString(w, s)
}
