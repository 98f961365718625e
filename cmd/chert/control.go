package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert"
)

// controlServer serves the socket of --control, by which "chert upgrade" reaches the process.
type controlServer struct {
	listener
	srv     *chert.Server
	upgrade atomic.Pointer[func() (string, error)] // nil until the process serves
}

// parseControl parses the value of --control: the path of a unix socket, which may have the prefix and the options
// of --listen. By default only its owner, and root, may connect.
func parseControl(s string) (endpoint, error) {
	e, err := parseSocket(strings.TrimPrefix(s, "unix:"))
	if err == nil && e.access.mode == 0 {
		e.access.mode = 0o600
		if e.access.group != "" {
			e.access.mode = 0o660
		}
	}
	return e, err
}

func checkControl(s string) error {
	_, err := parseControl(s)
	return err
}

// startControl opens the socket where. It returns nil for "".
func startControl(where string, errs *log.Logger) (*controlServer, error) {
	if where == "" {
		return nil, nil
	}
	e, err := parseControl(where)
	if err != nil {
		return nil, fmt.Errorf("--control: %w", err)
	}
	c := &controlServer{}
	c.srv = &chert.Server{ErrorLog: errs, Upgrader: upgrader, Engine: chert.EngineGoroutines, MaxConns: 64, Handler: c}
	if c.listener, err = listen(opener(c.srv), e); err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), "--listen", "--control"))
	}
	return c, nil
}

// serve begins to answer. upgrade may be called by several goroutines. c may be nil, as below.
func (c *controlServer) serve(upgrade func() (string, error)) {
	if c == nil {
		return
	}
	c.upgrade.Store(&upgrade)
	go func() {
		if err := c.srv.Serve(c.Listener); !errors.Is(err, http.ErrServerClosed) {
			c.srv.ErrorLog.Printf("the control socket failed: %v", err)
		}
	}()
}

// ServeHTTP implements http.Handler.
func (c *controlServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	switch {
	case r.URL.Path != "/upgrade":
		http.NotFound(w, r)
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "want POST", http.StatusMethodNotAllowed)
	default:
		text, err := (*c.upgrade.Load())()
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		// When the caller hears of it, its next connection is to reach the new process.
		<-chert.Stopping(r.Context())
		fmt.Fprintln(w, text)
	}
}

// giveWay leaves the socket to another process. The result awaits that answers under way, such as the one about this,
// have been sent.
func (c *controlServer) giveWay(ctx context.Context) (wait func()) {
	if c == nil {
		return func() {}
	}
	done := make(chan struct{})
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	go func() {
		defer close(done)
		c.srv.Shutdown(ctx)
	}()
	return func() {
		<-done
		cancel()
	}
}

func (c *controlServer) close() {
	if c != nil {
		c.unlink()
		c.srv.Close()
		c.listener.close()
	}
}
