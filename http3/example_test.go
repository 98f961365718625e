package http3_test

import (
	"log"
	"net/http"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/http3"
)

// A server that speaks HTTP/1.1, HTTP/2 and HTTP/3.
func Example() {
	srv := &chert.Server{
		Addr:    ":443",
		Handler: http.FileServer(http.Dir("/srv/www")),
		HTTP3:   http3.New(nil),
	}
	log.Fatal(srv.ListenAndServeTLS("cert.pem", "key.pem"))
}
