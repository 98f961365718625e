// Command middleware serves one handler three ways, wrapped in chert's
// middleware: by itself, in chi and in gin.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/middleware"
	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	access := middleware.NewAccessLog(&middleware.AccessLogOptions{Output: os.Stdout, Latency: true, RequestID: true})
	defer access.Close()
	mw := stack(access, nil)
	mux := http.NewServeMux()
	mux.Handle("/", middleware.Chain(handler(), mw...))
	mux.Handle("/chi/", http.StripPrefix("/chi", inChi(mw)))
	mux.Handle("/gin/", http.StripPrefix("/gin", inGin(mw)))
	srv := &chert.Server{Handler: mux}
	l, err := srv.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("curl -H 'Authorization: Bearer secret' http://%s/hello\n", l.Addr())
	err = chert.Run(context.Background(), srv, 0, func() error { return srv.Serve(l) })
	if err != nil {
		access.Close() // Fatal calls no deferred function
		log.Fatal(err)
	}
}

// stack returns most of the package's middleware, in the documented order.
func stack(access *middleware.AccessLog, onPanic *middleware.RecoverOptions) []func(http.Handler) http.Handler {
	return []func(http.Handler) http.Handler{
		middleware.Must(middleware.RealIP(nil)), access.Wrap, middleware.Recover(onPanic),
		middleware.RequestID(nil), middleware.SecurityHeaders(nil), middleware.Must(middleware.CORS(&middleware.CORSOptions{Origins: []string{"https://a.example"}})),
		middleware.InFlight(&middleware.InFlightOptions{Max: 100}), middleware.Timeout(&middleware.TimeoutOptions{Limit: time.Minute}),
		middleware.Must(middleware.Bearer(&middleware.BearerOptions{Tokens: map[string]string{"ann": "secret"}})),
		middleware.BodyLimit(&middleware.BodyLimitOptions{MaxSize: 1 << 20}), middleware.Must(middleware.Compress(nil)), middleware.ETag(nil),
	}
}

func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello, %s\n", middleware.UserOf(r.Context()))
	})
	mux.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { panic("on purpose") })
	mux.HandleFunc("GET /text", func(w http.ResponseWriter, r *http.Request) {
		for i := range 1000 {
			fmt.Fprintf(w, "line %d\n", i)
		}
	})
	mux.HandleFunc("POST /upload", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		fmt.Fprintln(w, n)
	})
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		c := http.NewResponseController(w)
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			if c.Flush() != nil {
				return
			}
		}
	})
	mux.HandleFunc("GET /hijack", func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer c.Close()
		rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nmine")
		rw.Flush()
	})
	return mux
}

func inChi(mw []func(http.Handler) http.Handler) http.Handler {
	r := chi.NewRouter()
	r.Use(mw...)
	r.Mount("/", handler())
	return r
}

// inGin uses each middleware in gin: the handler that it wraps is the rest of
// gin's chain.
func inGin(mw []func(http.Handler) http.Handler) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.SetTrustedProxies(nil) // gin trusts every client's X-Forwarded-For; RealIP finds out the address
	for _, m := range mw {
		r.Use(ginned(m))
	}
	r.GET("/stream", func(c *gin.Context) {
		n := 0
		c.Stream(func(w io.Writer) bool {
			fmt.Fprintf(w, "%d\n", n)
			n++
			return n < 3
		})
	})
	h := gin.WrapH(handler())
	for _, route := range []string{"GET /hello", "GET /panic", "GET /text", "POST /upload", "GET /events", "GET /hijack"} {
		var method, path string
		fmt.Sscan(route, &method, &path)
		r.Handle(method, path, h)
	}
	return r
}
