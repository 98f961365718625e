package httputil

import (
	"cmp"
	"io"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"strconv"
	"sync"

	"chert/direct"
	"chert/proxy"
)

// A ReverseProxy of this GOROOT forwards by chert's package proxy: its ServeHTTP is onChert.
// FlushInterval and BufferPool mean nothing to chert, which holds no response back and has
// buffers of its own.

var (
	pool      = proxy.NewPool(&proxy.PoolOptions{Logger: slog.New(slog.DiscardHandler)})
	upstreams sync.Map // of *proxy.Upstream, by address
)

// everyone is trusted, since a Director gets the X-Forwarded-For of any client.
var everyone = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

func (p *ReverseProxy) onChert(w http.ResponseWriter, r *http.Request) {
	addr := p.target(r).Host
	if _, ok := p.Transport.(*http.Transport); p.Transport != nil && !ok {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		s := &http.Server{Handler: serverOf{p.Transport}}
		go s.Serve(l)
		defer s.Close()
		addr = l.Addr().String()
	}
	p.handler(addr, p.change).ServeHTTP(w, r)
}

// ServeDirect forwards on loops what a program leaves unchanged, as chert's own Handler does.
func (p *ReverseProxy) ServeDirect(x *direct.Exchange) bool {
	single := NewSingleHostReverseProxy(nil).Director
	if p.Director == nil || reflect.ValueOf(p.Director).Pointer() != reflect.ValueOf(single).Pointer() ||
		p.Transport != nil {
		return false
	}
	t := p.target(&http.Request{URL: &url.URL{Path: "/"}, Header: http.Header{}})
	if t.Path != "/" || t.RawQuery != "" {
		return false
	}
	return p.handler(t.Host, nil).ServeDirect(x)
}

// target is where r is to be sent.
func (p *ReverseProxy) target(r *http.Request) *url.URL {
	out := *r
	u := *r.URL
	out.URL, out.Header = &u, maps.Clone(r.Header)
	if out.Header == nil {
		out.Header = http.Header{}
	}
	p.changeFrom(r, &out)
	return out.URL
}

func (p *ReverseProxy) change(r *proxy.Request) { p.changeFrom(r.In, r.Out) }

// changeFrom runs the functions of the program.
func (p *ReverseProxy) changeFrom(in, out *http.Request) {
	if p.Director != nil {
		p.Director(out)
		return
	}
	r := &ProxyRequest{In: in, Out: out}
	p.Rewrite(r)
	if o := r.Out; o != out {
		out.Method, out.URL, out.Host, out.Header = o.Method, o.URL, o.Host, o.Header
	}
}

func (p *ReverseProxy) handler(addr string, rewrite func(*proxy.Request)) *proxy.Handler {
	u, ok := upstreams.Load(addr)
	if !ok {
		var err error
		u, err = pool.Upstream(&proxy.UpstreamOptions{Name: "httputil", Servers: []proxy.Server{{Addr: addr}},
			Health: proxy.Health{Off: true}})
		if err != nil {
			panic(err)
		}
		upstreams.Store(addr, u)
	}
	o := &proxy.Options{Upstream: u.(*proxy.Upstream), Rewrite: rewrite, ModifyResponse: p.ModifyResponse,
		NoXForwarded: p.Rewrite != nil, Logger: slog.New(slog.NewTextHandler(cmp.Or(p.ErrorLog, log.Default()).Writer(), nil))}
	if p.Rewrite == nil {
		o.Trusted = everyone
	}
	if f := p.ErrorHandler; f != nil {
		o.ErrorHandler = func(w http.ResponseWriter, r *http.Request, err *proxy.Error) { f(w, r, err) }
	}
	h, err := proxy.New(o)
	if err != nil {
		panic(err)
	}
	return h
}

// serverOf is a server in place of a Transport, since chert has connections of its own: it
// answers what the Transport returns, and closes the connection after an error.
type serverOf struct{ http.RoundTripper }

func (s serverOf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 {
		r.Body = nil
	}
	res, err := s.RoundTrip(r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer res.Body.Close()
	maps.Copy(w.Header(), res.Header)
	if res.ContentLength > 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(res.ContentLength, 10))
	}
	w.WriteHeader(res.StatusCode)
	io.Copy(w, res.Body)
}
