package wire_test

import (
	"fmt"
	"io"
	"log"
	"net/http"

	"github.com/chert-http/chert/chertest"
	"github.com/chert-http/chert/direct/wire"
)

// A line is written to a log when the response has been sent.
type line struct {
	method, path string
	written      chan string
}

// Keep is called if the client does not accept the response at once: line shares no memory with the request anyway.
func (l *line) Keep() {}

func (l *line) Sent(d wire.Delivery) {
	l.written <- fmt.Sprint(l.method, " ", l.path, " ", d.Status, " ", d.Body, " bytes, complete: ", d.Complete)
}

// Middleware learns by Watch when a response has been sent, which may be long after its handler has returned, and how
// much of it.
func ExampleWatch() {
	written := make(chan string, 1)
	logged := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !wire.Watch(w, &line{r.Method, r.URL.Path, written}) {
				log.Print("not chert's server: the response has been written when next returns")
			}
			next.ServeHTTP(w, r)
		})
	}
	srv := chertest.NewServer(logged(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "hello")
	})))
	defer srv.Close()
	res, err := srv.Client().Get(srv.URL + "/greeting")
	if err != nil {
		log.Fatal(err)
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
	fmt.Println(<-written)
	// Output: GET /greeting 200 5 bytes, complete: true
}
