package main

import (
	"context"
	"net/http"
	"strings"

	"github.com/chert-http/chert/lab/arena/sumpb"
	"google.golang.org/grpc"
)

//go:generate protoc -I sumpb --go_out=sumpb --go_opt=paths=source_relative --go-grpc_out=sumpb --go-grpc_opt=paths=source_relative sum.proto

// withGRPC passes calls of gRPC to grpc-go, and all else to h.
func withGRPC(h http.Handler) http.Handler {
	g := grpc.NewServer()
	sumpb.RegisterBenchmarkServiceServer(g, sums{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && r.Method == http.MethodPost && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			g.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

type sums struct {
	sumpb.UnimplementedBenchmarkServiceServer
}

// GetSum adds.
func (sums) GetSum(_ context.Context, r *sumpb.SumRequest) (*sumpb.SumReply, error) {
	return &sumpb.SumReply{Result: r.A + r.B}, nil
}

// StreamSum sends count numbers, from the sum on.
func (sums) StreamSum(r *sumpb.StreamRequest, s grpc.ServerStreamingServer[sumpb.SumReply]) error {
	for i := range max(r.Count, 1) {
		if err := s.Send(&sumpb.SumReply{Result: r.A + r.B + i}); err != nil {
			return err
		}
	}
	return nil
}
