package main

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/examples/internal/engines"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
)

func TestMain(m *testing.M) { engines.Main(m) }

// eachClient runs f with a client of each kind of server.
func eachClient(t *testing.T, g *grpc.Server, f func(t *testing.T, ctx context.Context, c *grpc.ClientConn, addr string)) {
	for _, e := range []struct {
		name string
		is   chert.Engine
	}{{"auto", chert.EngineAuto}, {"goroutines", chert.EngineGoroutines}} {
		for _, secure := range []bool{false, true} {
			name := e.name
			if secure {
				name += " tls"
			}
			t.Run(name, func(t *testing.T) {
				srv := newServer(handler(g))
				srv.Engine = e.is
				l, err := srv.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				serve, creds := srv.Serve, insecure.NewCredentials()
				if secure {
					srv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate(t)}}
					serve = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }
					creds = credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})
				}
				served := make(chan error, 1)
				go func() { served <- serve(l) }()
				ctx, cancel := context.WithTimeout(context.Background(), engines.Patience)
				defer cancel()
				c, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(creds))
				if err != nil {
					t.Fatal(err)
				}
				f(t, ctx, c, l.Addr().String())
				c.Close()
				if err := srv.Shutdown(ctx); err != nil {
					t.Error(err)
				}
				if err := <-served; err != http.ErrServerClosed {
					t.Error(err)
				}
			})
		}
	}
}

// certificate is that of net/http's test servers.
func certificate(t *testing.T) tls.Certificate {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return s.TLS.Certificates[0]
}

func TestHealth(t *testing.T) {
	g, h := grpc.NewServer(), health.NewServer()
	healthpb.RegisterHealthServer(g, h)
	eachClient(t, g, func(t *testing.T, ctx context.Context, c *grpc.ClientConn, addr string) {
		h.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
		w, err := healthpb.NewHealthClient(c).Watch(ctx, &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		want := func(status healthpb.HealthCheckResponse_ServingStatus) {
			t.Helper()
			if r, err := w.Recv(); err != nil || r.Status != status {
				t.Fatalf("%v, %v, want %v", r, err, status)
			}
		}
		want(healthpb.HealthCheckResponse_SERVING)
		h.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
		want(healthpb.HealthCheckResponse_NOT_SERVING)
		r, err := (&http.Client{}).Get("http://" + addr + "/")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		// Over TLS the plain request has the status that net/http sends.
		if b, err := io.ReadAll(r.Body); err != nil || r.StatusCode != 200 && r.StatusCode != 400 {
			t.Errorf("%s %q %v", r.Status, b, err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
}

// A stream that has no end by itself does not delay a Shutdown, and ends with a status.
func TestShutdown(t *testing.T) {
	g := grpc.NewServer(grpc.StreamInterceptor(untilStop))
	healthpb.RegisterHealthServer(g, health.NewServer())
	for _, e := range []chert.Engine{chert.EngineAuto, chert.EngineGoroutines} {
		srv := newServer(handler(g))
		srv.Engine = e
		l, err := srv.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- srv.Serve(l) }()
		ctx, cancel := context.WithTimeout(context.Background(), engines.Patience)
		defer cancel()
		c, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		w, err := healthpb.NewHealthClient(c).Watch(ctx, &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := w.Recv(); err != nil || r.Status != healthpb.HealthCheckResponse_SERVING {
			t.Fatal(r, err)
		}
		if err := srv.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if _, err := w.Recv(); status.Code(err) != codes.Canceled || ctx.Err() != nil {
			t.Errorf("the stream ended with %v", err)
		}
		if err := <-served; err != http.ErrServerClosed {
			t.Error(err)
		}
	}
}

// TestInterop runs gRPC's interoperability tests. They end the process if they fail.
func TestInterop(t *testing.T) {
	g := grpc.NewServer()
	testgrpc.RegisterTestServiceServer(g, interop.NewTestServer())
	eachClient(t, g, func(t *testing.T, ctx context.Context, c *grpc.ClientConn, _ string) {
		tc := testgrpc.NewTestServiceClient(c)
		began := time.Now()
		for _, one := range []struct {
			name string
			do   func(context.Context, testgrpc.TestServiceClient, ...grpc.CallOption)
		}{
			{"empty unary", interop.DoEmptyUnaryCall},
			{"large unary", interop.DoLargeUnaryCall},
			{"client streaming", interop.DoClientStreaming},
			{"server streaming", interop.DoServerStreaming},
			{"ping pong", interop.DoPingPong},
			{"empty stream", interop.DoEmptyStream},
			{"timeout", interop.DoTimeoutOnSleepingServer},
			{"cancel after begin", interop.DoCancelAfterBegin},
			{"cancel after the first response", interop.DoCancelAfterFirstResponse},
			{"custom metadata", interop.DoCustomMetadata},
			{"status code and message", interop.DoStatusCodeAndMessage},
			{"special status message", interop.DoSpecialStatusMessage},
		} {
			t.Logf("%v: %s", time.Since(began), one.name)
			one.do(ctx, tc)
		}
		interop.DoUnimplementedService(ctx, testgrpc.NewUnimplementedServiceClient(c))
		interop.DoUnimplementedMethod(ctx, c)
	})
}
