// Command slog logs each request with log/slog.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/chert-http/chert"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	srv := &chert.Server{
		Handler:  logging(logger, handler()),
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelError),
	}
	l, err := srv.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/\n", l.Addr())
	if err := chert.Run(context.Background(), srv, 0, func() error { return srv.Serve(l) }); err != nil {
		log.Fatal(err)
	}
}

func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello\n") })
	mux.HandleFunc("GET /items/{id}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "item %s\n", r.PathValue("id"))
	})
	mux.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { panic("on purpose") })
	return mux
}

// logging logs a line for each request when its handler has returned or
// panicked.
func logging(l *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &recorder{ResponseWriter: w}
		began := time.Now()
		returned := false
		defer func() {
			level := slog.LevelInfo
			if !returned { // a panic, at which the server closes the connection
				level = slog.LevelError
			}
			if returned {
				rec.note(http.StatusOK)
			}
			l.LogAttrs(r.Context(), level, "request",
				slog.String("method", r.Method),
				slog.String("path", r.URL.Path),
				slog.String("pattern", r.Pattern), // the mux has set it meanwhile
				slog.Int("status", rec.status),
				slog.Int64("bytes", rec.bytes),
				slog.Duration("took", time.Since(began)),
				slog.String("from", r.RemoteAddr))
		}()
		next.ServeHTTP(rec, r)
		returned = true
	})
}

// recorder records the status and the size of a response.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// note records the final status; interim ones may precede it.
func (r *recorder) note(status int) {
	if r.status < 200 && r.status != http.StatusSwitchingProtocols {
		r.status = status
	}
}

func (r *recorder) WriteHeader(status int) {
	r.note(status)
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	r.note(http.StatusOK)
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// ReadFrom preserves sendfile for files.
func (r *recorder) ReadFrom(src io.Reader) (int64, error) {
	r.note(http.StatusOK)
	n, err := io.Copy(r.ResponseWriter, src)
	r.bytes += n
	return n, err
}

// Unwrap lets http.ResponseController reach Flush, Hijack and the deadlines.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
