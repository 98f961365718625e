package stats_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"github.com/chert-http/chert/chertest"
	"github.com/chert-http/chert/stats"
)

// What happened between two snapshots is their difference.
func ExampleSnapshot() {
	srv := chertest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	defer srv.Close()
	before := srv.Config.Stats()
	for range 3 {
		res, err := srv.Client().Get(srv.URL)
		if err != nil {
			log.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	now := srv.Config.Stats()
	fmt.Println("connections:", now.Connections.Accepted-before.Connections.Accepted)
	fmt.Println("closed because they were idle:", stats.Get(now.Timeouts, "idle"))
	// Output:
	// connections: 1
	// closed because they were idle: 0
}

// A program measures durations of its own as a server does, with at most 19 % between the bounds of a bucket.
func ExampleHistogram() {
	var h stats.Histogram
	for i := range 100 {
		h.Observe(time.Duration(i+1)*time.Millisecond, 1)
	}
	earlier := h
	h.Observe(time.Second, 1)
	latest := h.Sub(&earlier)
	fmt.Println(h.N(), h.Mean().Round(time.Millisecond))
	fmt.Println(h.Quantile(0.5) > 45*time.Millisecond && h.Quantile(0.5) < 55*time.Millisecond)
	fmt.Println(latest.N(), latest.Sum)
	// Output:
	// 101 60ms
	// true
	// 1 1s
}
