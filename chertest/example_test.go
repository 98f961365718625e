package chertest_test

import (
	"fmt"
	"io"
	"log"
	"net/http"

	"github.com/chert-http/chert/chertest"
)

func Example() {
	srv := chertest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "hello, "+r.URL.Query().Get("name"))
	}))
	defer srv.Close()

	res, err := srv.Client().Get(srv.URL + "/?name=chert")
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", body)
	// Output: hello, chert
}

func ExampleNewTLSServer() {
	srv := chertest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s over TLS: %v", r.Host, r.TLS != nil)
	}))
	defer srv.Close()

	// The server's own client trusts its certificate.
	res, err := srv.Client().Get("https://example.com/")
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", body)
	// Output: example.com over TLS: true
}
