package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/proxy"
)

// front is a proxy for clients that speak HTTP/2 without TLS by prior knowledge, which the
// command has no setting for: the program as a server, for suites that are no Go tests. Its
// arguments are the address, those of servers, the engine, and whether servers speak HTTP/2.
func front(ctx context.Context, args []string) error {
	if len(args) != 4 {
		return errors.New("front: want an address, servers, an engine, and whether they speak HTTP/2")
	}
	o := &proxy.UpstreamOptions{Name: "app"}
	for addr := range strings.SplitSeq(args[1], ",") {
		o.Servers = append(o.Servers, proxy.Server{Addr: addr})
	}
	if args[3] == "true" {
		o.Protocol = proxy.ProtocolHTTP2
	}
	pool := proxy.NewPool(nil)
	defer pool.Close()
	u, err := pool.Upstream(o)
	if err != nil {
		return err
	}
	h, err := proxy.New(&proxy.Options{Upstream: u})
	if err != nil {
		return err
	}
	s := &chert.Server{Handler: h, ExtendedConnect: true, Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	if args[2] == "goroutines" {
		s.Engine = chert.EngineGoroutines
	}
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	fmt.Println("serving at http://" + l.Addr().String())
	go func() {
		<-ctx.Done()
		s.Close()
	}()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
