// Command arena is chert's entry for HttpArena, a public benchmark of web frameworks, in the rules of its class
// "production": the framework's own interfaces, its default settings, the usual libraries for what it does not do.
// README.md says which profiles it takes part in.
package main

import (
	"context"
	"errors"
	"io/fs"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/chert-http/chert"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, fromEnvironment()); err != nil {
		log.Fatal(err)
	}
}

// settings are where things are. The benchmark mounts them at the defaults.
type settings struct {
	plain, secure    string // addresses
	plain2, secure2  string // the same for HTTP/2
	certificate, key string // files
	dataset, files   string
	database         string // URL; empty for none
	connections      string // to the database
}

func fromEnvironment() settings {
	or := func(name, otherwise string) string {
		if v := os.Getenv(name); v != "" {
			return v
		}
		return otherwise
	}
	return settings{
		plain: ":8080", secure: ":8081", plain2: ":8082", secure2: ":8443",
		certificate: or("TLS_CERT", "/certs/server.crt"), key: or("TLS_KEY", "/certs/server.key"),
		dataset: or("DATASET_PATH", "/data/dataset.json"), files: or("STATIC_PATH", "/data/static"),
		database: os.Getenv("DATABASE_URL"), connections: os.Getenv("DATABASE_MAX_CONN"),
	}
}

// run serves until ctx ends.
func run(ctx context.Context, s settings) error {
	a, err := newApp(ctx, s)
	if err != nil {
		return err
	}
	defer a.close()
	failed := make(chan error, 4)
	var servers []*chert.Server
	serve := func(addr string, protocols *http.Protocols, h http.Handler, listen func(*chert.Server) error) {
		server := &chert.Server{Addr: addr, Handler: h, Protocols: protocols}
		servers = append(servers, server)
		go func() { failed <- listen(server) }()
	}
	calls := withGRPC(a.handler)
	both := new(http.Protocols)
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	serve(s.plain, both, calls, (*chert.Server).ListenAndServe)
	prior := new(http.Protocols)
	prior.SetUnencryptedHTTP2(true)
	serve(s.plain2, prior, a.handler, (*chert.Server).ListenAndServe)
	if _, err := os.Stat(s.certificate); !errors.Is(err, fs.ErrNotExist) {
		secure := func(server *chert.Server) error { return server.ListenAndServeTLS(s.certificate, s.key) }
		one := new(http.Protocols)
		one.SetHTTP1(true)
		serve(s.secure, one, a.handler, secure)
		serve(s.secure2, nil, calls, secure)
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for _, server := range servers {
		err = errors.Join(err, server.Shutdown(end))
	}
	for range servers {
		if ended := <-failed; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
	}
	return err
}
