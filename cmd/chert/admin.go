package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/admin"
	"github.com/chert-http/chert/cmd/chert/internal/vhost"
	"github.com/chert-http/chert/metrics"
	"github.com/chert-http/chert/proxy"
	"github.com/chert-http/chert/stats"
)

// adminServer serves package admin. It stays open while the server drains, so that the
// drain can be watched and load balancers learn of it.
type adminServer struct {
	listener
	srv      *chert.Server
	draining atomic.Bool
	shown    atomic.Pointer[shown] // a reload changes it
	left     chan struct{}         // closed when another process has the address
}

// shown is what the page shows of a server's setup.
type shown struct {
	admin.Setup                 // without when certificates expire
	tls         *tlsSites       // whose certificates may be renewed
	hosts       []vhost.Pattern // a host of each site
}

// checkAdmin checks the form of an address for --admin.
func checkAdmin(s string) error {
	_, err := parseEndpoint(s)
	return err
}

// startAdmin opens the address where, and serves source on it. It returns nil for "".
// listen are the addresses of the server itself; upstreams and stores may be nil.
func startAdmin(where string, listen []endpoint, source stats.Source, title string,
	upstreams func() []proxy.UpstreamStatus, stores func() []stats.Store, errs *log.Logger) (*adminServer, error) {
	if where == "" {
		return nil, nil
	}
	e, err := parseEndpoint(where)
	if err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	for _, other := range listen {
		if err := e.clash(other); err != nil {
			return nil, fmt.Errorf("--admin %s: %w", e, err)
		}
	}
	a := &adminServer{left: make(chan struct{})}
	// A goroutine for each connection, so that it works while loops do not.
	a.srv = &chert.Server{ErrorLog: errs, Upgrader: upgrader, Engine: chert.EngineGoroutines, MaxConns: 256,
		Handler: a.untilLeft(admin.New(source, &admin.Options{Title: title, Version: "chert " + version(),
			Setup: a.setup, Ready: a.ready, Hosts: adminHosts(e), Upstreams: upstreams, Stores: stores,
			Metrics: metrics.Handler(source, &metrics.Options{Upstreams: upstreams, Stores: stores})}))}
	if a.listener, err = listenAdmin(a.srv, e); err != nil {
		return nil, err
	}
	go func() {
		if err := a.srv.Serve(a.Listener); !errors.Is(err, http.ErrServerClosed) {
			errs.Printf("the admin address failed: %v", err)
		}
	}()
	return a, nil
}

func listenAdmin(srv *chert.Server, e endpoint) (listener, error) {
	l, err := listen(opener(srv), e)
	if err != nil {
		err = errors.New(strings.ReplaceAll(err.Error(), "--listen", "--admin"))
	}
	return l, err
}

// adminHosts returns the name that the page may be requested under, if the address has
// one.
func adminHosts(e endpoint) []string {
	host, _, err := net.SplitHostPort(e.address)
	if e.network != "tcp" || err != nil || host == "" {
		return nil
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	return []string{host}
}

// show lets the page show a setup, and the addresses that the server listens on. It may be
// called again. a may be nil.
func (a *adminServer) show(s shown, ls []listener) {
	if a == nil {
		return
	}
	s.Addrs = nil
	for _, l := range ls {
		s.Addrs = append(s.Addrs, l.url())
	}
	a.shown.Store(&s)
}

// failed lets the page show why a reload has failed. a may be nil.
func (a *adminServer) failed(err error) {
	if a == nil {
		return
	}
	s := *a.shown.Load()
	s.Reload = &admin.Reload{At: time.Now(), Error: err.Error()}
	a.shown.Store(&s)
}

func (a *adminServer) setup() admin.Setup {
	s := a.shown.Load()
	if s == nil {
		return admin.Setup{} // it is only starting
	}
	setup := s.Setup
	setup.Sites = slices.Clone(setup.Sites)
	for i, host := range s.hosts {
		setup.Sites[i].Expires = s.tls.expires(host)
	}
	return setup
}

func (a *adminServer) ready() bool { return !a.draining.Load() }

// drain lets /readyz answer 503. a may be nil, as below.
func (a *adminServer) drain() {
	if a != nil {
		a.draining.Store(true)
	}
}

// untilLeft ends event streams when another process has the address: a page that follows one connects again, and would
// otherwise show this process for as long as it drains.
func (a *adminServer) untilLeft(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/events" {
			h.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go func() {
			select {
			case <-a.left:
				cancel()
			case <-ctx.Done():
			}
		}()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// giveWay leaves the address to another process. The result awaits that; requests under way are answered.
func (a *adminServer) giveWay(ctx context.Context, over time.Duration) (wait func()) {
	if a == nil {
		return func() {}
	}
	close(a.left)
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.srv.Drain(ctx, over)
	}()
	return func() {
		a.srv.Close() // the server that it shows has ended
		<-done
	}
}

func (a *adminServer) close() {
	if a != nil {
		a.unlink()
		a.srv.Close()
		a.listener.close()
	}
}

// line is printed after the start line.
func (a *adminServer) line() string {
	if a == nil {
		return ""
	}
	text := "\nchert: admin page at " + a.url()
	if tcp, ok := a.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		text += " (other machines can reach it, and it has no authentication)"
	}
	return text
}
