// Command scale serves answers of any size behind any number of routes, on chert or net/http: the parts of a request whose
// cost grows.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"strconv"

	"github.com/chert-http/chert"

	"github.com/chert-http/chert/lab/handler"
	"github.com/chert-http/chert/lab/serve"
)

var (
	engine = flag.String("engine", "chert", "chert or nethttp")
	routes = flag.Int("routes", 1, "how many routes there are beside the usual ones")
)

// largest is the size of the largest answer.
const largest = 1 << 20

func main() { serve.Main(run) }

func run(addr string) error {
	mux := http.NewServeMux()
	mux.Handle("/", handler.New())
	body := bytes.Repeat([]byte("x"), largest)
	mux.HandleFunc("GET /bytes/{n}", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.PathValue("n"))
		if err != nil || n < 0 || n > largest {
			http.Error(w, "no such size", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", strconv.Itoa(n))
		w.Write(body[:n])
	})
	for i := range *routes {
		mux.HandleFunc(fmt.Sprintf("GET /route/%d/of/{name}", i), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			fmt.Fprint(w, r.PathValue("name"))
		})
	}
	switch *engine {
	case "chert":
		return (&chert.Server{Addr: addr, Handler: mux, MaxConns: -1}).ListenAndServe()
	case "nethttp":
		return (&http.Server{Addr: addr, Handler: mux}).ListenAndServe()
	}
	return fmt.Errorf("no engine %q", *engine)
}
