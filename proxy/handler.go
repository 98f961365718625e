package proxy

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"

	"github.com/chert-http/chert/internal/http1"
)

// Options are the options of New.
type Options struct {
	// Upstream gets the requests. Required, unless there is Choose.
	Upstream *Upstream
	// Choose returns the Upstream of a request, as for a canary or a split; nil is
	// Options.Upstream. Requests then have goroutines; a handler that passes them to several Handlers, such
	// as middleware.Choose, needs none.
	Choose func(r *http.Request) *Upstream

	// Rewrite changes the request for the upstream after the proxy's own changes, once for
	// all tries. It runs before a server is chosen.
	Rewrite func(r *Request)
	// ModifyResponse changes a response before it is sent to the client. After an error,
	// ErrorHandler responds instead. It is not called for interim responses and for 101.
	ModifyResponse func(r *http.Response) error
	// ErrorHandler responds to a request that no response of an upstream answers. By default
	// it is answered with the error's status, a field Proxy-Status, and the text of the
	// status, or what middleware.ErrorPages and Problems make of that.
	ErrorHandler func(w http.ResponseWriter, r *http.Request, err *Error)

	// Trusted are the addresses of proxies in front. Their X-Forwarded-* and X-Real-IP fields
	// and Forwarded are passed on and added to; those of other clients are replaced. A
	// middleware.RealIP around the handler decides instead of it for the requests whose
	// address it replaces.
	Trusted []netip.Prefix
	// TrustLocal trusts peers without an IP address: those of unix sockets.
	TrustLocal bool
	// Forwarded sends Forwarded (RFC 7239) too.
	Forwarded bool
	// NoXForwarded sends no X-Forwarded-* and no X-Real-IP of its own.
	NoXForwarded bool
	// Host is the Host field: "" is what the client has sent, "upstream" the address of the
	// server as it is configured, anything else a name.
	Host string
	// EarlyData forwards requests that may be replays since the client's TLS handshake has not ended
	// (http3.Options.EarlyData), with the field Early-Data. The servers must answer 425 to those that they do
	// not want to run then. By default the proxy does.
	EarlyData bool
	// StripPrefix is cut off from the path: with "/api" a request for /api/x is forwarded as
	// /x, with X-Forwarded-Prefix. It comes back in Location, Content-Location and the Path of
	// cookies. A request for another path is answered 404, and one with dot segments 400.
	StripPrefix string
	// Via is the name of this proxy in Via and Proxy-Status, a token. A request that has
	// passed a proxy of this name twice is a loop and answered 508. Default "chert".
	Via string

	// BufferRequest is how many bytes of a request's body are read before a server is chosen,
	// and kept for retries. Default 64 KiB; negative: none.
	BufferRequest int
	// Logger receives one line for each error. Default: slog.Default.
	Logger *slog.Logger

	trusted []netip.Prefix // Trusted, with IPv4 addresses as such
	status  string         // Via as an item of Proxy-Status
}

// Request is what Options.Rewrite changes.
type Request struct {
	// In is the client's request, which must not be changed.
	In *http.Request
	// Out is the request for the upstream. Method, URL (path and query), Host and Header can
	// be changed. The framing, Connection, Upgrade and TE are the proxy's. An empty Host is
	// that of the server.
	Out *http.Request
	// Upstream is the name of the Upstream.
	Upstream string
}

// Handler forwards requests. It is safe for concurrent use.
type Handler struct {
	o     Options // complete; immutable
	loops bool    // Options.onLoops
}

// New returns a Handler. It is an error if an option cannot be used.
func New(o *Options) (*Handler, error) {
	h := &Handler{}
	if o != nil {
		h.o = *o
	}
	if err := h.o.complete(); err != nil {
		return nil, fmt.Errorf("proxy: New: %w", err)
	}
	h.loops = h.o.onLoops()
	return h, nil
}

func (o *Options) complete() error {
	if o.Upstream == nil && o.Choose == nil {
		return field("Upstream", "nil, without Choose")
	}
	if o.Via == "" {
		o.Via = "chert"
	}
	if !http1.ValidFieldName(o.Via) {
		return field("Via", "%q is no token", o.Via)
	}
	// RFC 8941 section 3.3.4: a token of a structured field begins with a letter or "*".
	o.status = o.Via
	if c := o.Via[0]; c != '*' && (c|0x20 < 'a' || c|0x20 > 'z') {
		o.status = `"` + o.Via + `"`
	}
	switch {
	case o.BufferRequest == 0:
		o.BufferRequest = 64 << 10
	case o.BufferRequest < 0:
		o.BufferRequest = 0
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	for _, p := range o.Trusted {
		a := p.Addr()
		switch {
		case !p.IsValid():
			return field("Trusted", "a prefix is not valid")
		case a.Is4In6() && p.Bits() < 96:
			return field("Trusted", "%s covers IPv4 and IPv6", p)
		case a.Is4In6():
			p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
		}
		o.trusted = append(o.trusted, p)
	}
	if o.Host != "" && !http1.ValidHost([]byte(o.Host)) {
		return field("Host", "%q is no host", o.Host)
	}
	if p := o.StripPrefix; p != "" &&
		(p[0] != '/' || strings.HasSuffix(p, "/") || strings.ContainsAny(p, "?#%") || !plain(p)) {
		return field("StripPrefix", "%q; want a path such as \"/api\"", p)
	}
	return nil
}

func (h *Handler) upstream(r *http.Request) *Upstream {
	if h.o.Choose != nil {
		if u := h.o.Choose(r); u != nil {
			return u
		}
	}
	return h.o.Upstream
}
