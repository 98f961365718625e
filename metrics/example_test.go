package metrics_test

import (
	"fmt"
	"io"
	"log"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/chertest"
	"github.com/chert-http/chert/metrics"
)

// A program serves metrics on an address of its own, which clients cannot reach.
func ExampleHandler() {
	srv := &chert.Server{Addr: ":8080", Handler: http.FileServer(http.Dir("www"))}
	admin := http.NewServeMux()
	admin.Handle("GET /metrics", metrics.Handler(srv, nil))
	go http.ListenAndServe("127.0.0.1:9090", admin)
	log.Fatal(srv.ListenAndServe())
}

// A program that has a registry adds the server to it.
func ExampleNewCollector() {
	srv := chertest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	defer srv.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewCollector(srv.Config, nil))

	res, err := srv.Client().Get(srv.URL)
	if err != nil {
		log.Fatal(err)
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()

	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "chert_connections_accepted_total" {
			fmt.Println(f.GetName(), f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	// Output: chert_connections_accepted_total 1
}
