package admin_test

import (
	"context"
	"log"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/admin"
)

func ExampleNew() {
	srv := &chert.Server{Addr: ":8080", Handler: http.FileServer(http.Dir("."))}
	var draining atomic.Bool
	srv.RegisterOnShutdown(func() { draining.Store(true) })

	page := admin.New(srv, &admin.Options{Ready: func() bool { return !draining.Load() }})
	go func() {
		log.Print(http.ListenAndServe("127.0.0.1:9080", page)) // for this machine only
	}()

	if err := chert.Run(context.Background(), srv, 20*time.Second); err != nil {
		log.Fatal(err)
	}
}
