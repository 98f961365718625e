package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/chert-http/chert/proxy"
)

func Example() {
	// A server to forward to.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, r.URL.Path, "for", r.Header.Get("X-Forwarded-Host"))
	}))
	defer server.Close()

	pool := proxy.NewPool(nil)
	defer pool.Close()
	app, err := pool.Upstream(&proxy.UpstreamOptions{
		Name:    "app",
		Servers: []proxy.Server{{Addr: server.Listener.Addr().String()}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	h, err := proxy.New(&proxy.Options{Upstream: app, StripPrefix: "/api"})
	if err != nil {
		fmt.Println(err)
		return
	}

	// It runs on any server; chert.Server is one.
	front := httptest.NewServer(h)
	defer front.Close()
	request, _ := http.NewRequest("GET", front.URL+"/api/users", nil)
	request.Host = "example.com"
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	fmt.Print(string(body))
	fmt.Println(pool.Status()[0].Servers[0].State)
	// Output:
	// /users for example.com
	// up
}

func ExampleNew_canary() {
	pool := proxy.NewPool(nil)
	defer pool.Close()
	upstream := func(name, addr string) *proxy.Upstream {
		u, err := pool.Upstream(&proxy.UpstreamOptions{Name: name, Servers: []proxy.Server{{Addr: addr}}})
		if err != nil {
			panic(err)
		}
		return u
	}
	stable, canary := upstream("stable", "10.0.0.1:8080"), upstream("canary", "10.0.0.2:8080")
	_, err := proxy.New(&proxy.Options{
		Upstream: stable,
		Choose: func(r *http.Request) *proxy.Upstream {
			if r.Header.Get("X-Canary") != "" {
				return canary
			}
			return nil // stable
		},
		Rewrite: func(r *proxy.Request) {
			r.Out.Header.Del("X-Canary")
		},
	})
	fmt.Println(err)
	// Output: <nil>
}
