package basicauth_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/middleware/basicauth"
)

func Example() {
	hash, err := basicauth.Hash("correct horse") // once, to be stored
	if err != nil {
		log.Fatal(err)
	}
	auth, err := basicauth.New(&basicauth.Options{Users: map[string]string{"admin": hash}})
	if err != nil {
		log.Fatal(err)
	}
	h := auth(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("hello,", middleware.UserOf(r.Context()))
	}))

	for _, password := range []string{"guess", "correct horse"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.SetBasicAuth("admin", password)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("WWW-Authenticate"))
	}
	// Output:
	// 401 Basic realm="restricted", charset="UTF-8"
	// hello, admin
	// 200
}
