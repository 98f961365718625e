// Command grpc serves gRPC and other HTTP at one address with chert, without TLS: the
// health service of gRPC, and GET /.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"

	"github.com/chert-http/chert"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	g := grpc.NewServer(grpc.StreamInterceptor(untilStop))
	h := health.NewServer()
	healthpb.RegisterHealthServer(g, h)
	srv := newServer(handler(g))
	srv.RegisterOnShutdown(h.Shutdown) // clients that watch it get NOT_SERVING
	l, err := srv.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/\n", l.Addr())
	if err := chert.Run(context.Background(), srv, 0, func() error { return srv.Serve(l) }); err != nil {
		log.Fatal(err)
	}
}

// newServer makes a server that also speaks HTTP/2 without TLS, to clients that begin
// with it as those of gRPC do.
func newServer(h http.Handler) *chert.Server {
	srv := &chert.Server{Handler: h, Protocols: new(http.Protocols)}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetHTTP2(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	return srv
}

// untilStop ends the context of a stream when the server stops. A stream that does not end
// would be cut off, at the end of Run's grace. Other calls end by themselves.
func untilStop(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
	ctx, cancel := context.WithCancel(ss.Context())
	defer cancel()
	go func() {
		select {
		case <-chert.Stopping(ctx):
			cancel()
		case <-ctx.Done():
		}
	}()
	return h(srv, stream{ss, ctx})
}

type stream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s stream) Context() context.Context { return s.ctx }

// handler passes calls to g.
func handler(g *grpc.Server) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "gRPC at the same address\n")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			g.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}
