package router_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/router"
)

func Example() {
	r := router.New()
	r.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprintln(w, "user", req.PathValue("id"), "by", req.Pattern)
	})
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest("GET", "/users/7", nil))
	fmt.Print(w.Body)
	w = httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest("DELETE", "/users/7", nil))
	fmt.Println(w.Code, w.Header().Get("Allow"))
	// Output:
	// user 7 by GET /users/{id}
	// 405 GET, HEAD, OPTIONS
}

// On chert such a route is answered without an *http.Request.
func ExampleRoutes_HandleDirect() {
	r := router.New()
	r.HandleDirect("GET /hello/{name}", func(x *direct.Exchange) {
		fmt.Fprintf(x, "Hello, %s!\n", x.PathValue("name"))
	})
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest("GET", "/hello/world", nil))
	fmt.Print(w.Body)
	// Output: Hello, world!
}

func ExampleRoutes_Group() {
	auth := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Header.Get("Authorization") == "" {
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, req)
		})
	}
	r := router.New()
	api := r.Group("/api/v1", auth)
	api.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, req *http.Request) {})
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/orders/7", nil))
	fmt.Println(w.Code)
	// Output: 401
}

func ExampleRouter_URL() {
	r := router.New()
	r.Handle("GET /users/{user}/files/{path...}", http.NotFoundHandler()).Named("file")
	fmt.Println(r.URL("file", "user", "ann/bob", "path", "a b/c.txt"))
	// Output: /users/ann%2Fbob/files/a%20b/c.txt <nil>
}

func ExampleRouter_Walk() {
	shop := router.New()
	shop.Handle("GET /items/{id}", http.NotFoundHandler())
	r := router.New()
	r.Mount("/shop", shop)
	r.Walk(func(pattern string, rt *router.Route) error {
		fmt.Println(pattern)
		return nil
	})
	// Output:
	// /shop/
	// GET /shop/items/{id}
}
