package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/chert-http/chert/internal/forward"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/origin"
)

// hostUpstream as Options.Host is the address of the server.
const hostUpstream = "upstream"

// outgoing is the request for an upstream as an http.Request, for Rewrite and HTTP/2. It is
// read from the head that internal/forward has written, so that there is one set of rules.
type outgoing struct {
	request *http.Request
	managed []byte   // field lines of the framing and of the connection
	target  string   // as in that head
	url     *url.URL // as target was parsed; nil if it cannot be
}

// managedFields are those that Rewrite does not see: they must agree with the body, and with
// what is done with the connection.
var managedFields = []http1.FieldID{http1.FieldContentLength, http1.FieldTransferEncoding, http1.FieldConnection,
	http1.FieldUpgrade, http1.FieldTE, http1.FieldTrailer, http1.FieldExpect}

// newOutgoing reads a head.
func newOutgoing(in *http.Request, head []byte) (*outgoing, *http1.Error) {
	var r http1.Request
	limits := http1.Limits{HeadBytes: maxClientHead + 4096, Fields: 1 << 14}
	if n, err := r.Parse(head, nil, &limits); err != nil || n == 0 {
		return nil, errField // it is larger, or has more fields, than any upstream would accept
	}
	o := &outgoing{target: string(r.Target.Bytes(head))}
	h := make(http.Header, len(r.Fields))
	for i := range r.Fields {
		f := &r.Fields[i]
		switch name, value := f.Name.Bytes(head), f.Value.Bytes(head); {
		case f.ID == http1.FieldHost:
		case slices.Contains(managedFields, f.ID):
			o.managed = append(append(append(append(o.managed, name...), ": "...), value...), "\r\n"...)
		default:
			key := http1.CanonicalName(name, f.ID)
			h[key] = append(h[key], string(value))
		}
	}
	u, err := url.ParseRequestURI(o.target)
	if err != nil {
		u = &url.URL{Path: "*"}
	} else {
		o.url = u
	}
	of := *u
	o.request = &http.Request{Method: string(r.Method.Bytes(head)), URL: &of,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Host: string(r.Host.Bytes(head)), ContentLength: in.ContentLength, RequestURI: ""}
	o.request = o.request.WithContext(in.Context())
	return o, nil
}

// path returns the target: the bytes of before, unless Rewrite has changed the URL.
func (o *outgoing) path() string {
	if u := o.request.URL; u != nil && o.url != nil && *u != *o.url {
		return u.RequestURI()
	}
	return o.target
}

// append writes the head again. It is refused if Rewrite has set what cannot be sent.
func (o *outgoing) append(dst []byte, host string) ([]byte, *http1.Error) {
	r, target := o.request, o.path()
	if !http1.ValidFieldName(r.Method) || r.Method == http.MethodConnect || !plain(target) ||
		strings.Contains(target, "#") || target != "*" && !strings.HasPrefix(target, "/") {
		return dst, errTarget
	}
	if !http1.ValidHost([]byte(host)) {
		return dst, errHost
	}
	dst = append(append(append(append(dst, r.Method...), ' '), target...), " HTTP/1.1\r\nHost: "...)
	dst = append(append(dst, host...), "\r\n"...)
	for _, name := range sortedKeys(r.Header) {
		if !http1.ValidFieldName(name) {
			return dst, errField
		}
		id := http1.LookupField([]byte(name))
		if id == http1.FieldHost || slices.Contains(managedFields, id) || forward.IsHop([]byte(name)) {
			continue
		}
		for _, value := range r.Header[name] {
			if !http1.ValidFieldValue(value) {
				return dst, errField
			}
			dst = http1.AppendField(dst, name, value)
		}
	}
	dst = append(dst, o.managed...)
	return append(dst, "\r\n"...), nil
}

// rewrite makes the request that Rewrite changes, and calls it.
func (f *forwarding) rewrite() *http1.Error {
	if f.h.o.Rewrite == nil && f.u.o.Protocol != ProtocolHTTP2 {
		return nil
	}
	f.frame()
	head, _, err := forward.AppendRequest(nil, f.client.b, &f.client.r, &f.options)
	if err != nil {
		return err.(*http1.Error)
	}
	var e *http1.Error
	if f.out, e = newOutgoing(f.r, head); e != nil {
		return e
	}
	if f.h.o.Host == hostUpstream {
		f.out.request.Host = ""
	}
	if f.h.o.Rewrite != nil {
		f.h.o.Rewrite(&Request{In: f.r, Out: f.out.request, Upstream: f.u.o.Name})
		// Here, as no server is to blame for it. HTTP/2 has what http.Transport would find as an error of the server.
		_, e = f.out.append(nil, f.out.request.Host)
	}
	return e
}

// frame sets the framing to what is known of the body.
func (f *forwarding) frame() {
	if f.upload == nil {
		return
	}
	// A chunked body that was read completely has a length, unless trailers follow.
	if b, whole := f.upload.Whole(); whole && len(f.r.Trailer) == 0 {
		f.client.r.ContentLength, f.client.r.Chunked = int64(len(b)), false
	}
}

// host returns the Host field for a server.
func (f *forwarding) host(p *pick) string {
	own := f.h.o.Host == hostUpstream
	if f.out != nil {
		if f.out.request.Host != "" {
			return f.out.request.Host
		}
		own = true
	}
	if own {
		return hostField(p.name, f.u.o.TLS != nil)
	}
	return string(f.options.Host)
}

// hostField returns the Host field for the address of a server, without the default port.
func hostField(addr string, secure bool) string {
	addr = hostOf(addr)
	port := ":80"
	if secure {
		port = ":443"
	}
	return strings.TrimSuffix(addr, port)
}

// head writes the head for a server.
func (f *forwarding) head(p *pick) ([]byte, forward.Sent, *http1.Error) {
	f.frame()
	if h := f.host(p); h != "" && f.out == nil {
		f.options.Host = []byte(h)
	}
	head, sent, err := forward.AppendRequest(make([]byte, 0, len(f.client.b)+512), f.client.b, &f.client.r, &f.options)
	if err != nil {
		return nil, sent, err.(*http1.Error)
	}
	if f.out == nil {
		return head, sent, nil
	}
	// sent.Expected.Upgrade stays in the memory of the other head.
	own, e := f.out.append(nil, f.host(p))
	sent.Expected.Head = f.out.request.Method == http.MethodHead
	return own, sent, e
}

// trailerSection returns the trailer section of the client's body, which has been read.
func (f *forwarding) trailerSection() []byte {
	var h clientHead
	for _, name := range sortedKeys(f.r.Trailer) {
		for _, value := range f.r.Trailer[name] {
			if http1.ValidFieldName(name) && http1.ValidFieldValue(value) {
				h.field(name, value)
			}
		}
	}
	return forward.AppendTrailer(nil, h.b, h.r.Fields)
}

// upgradeTo makes a request with an upgrade of an extended CONNECT. It returns the
// Sec-WebSocket-Accept with which a server of WebSockets must answer.
func (h *clientHead) upgradeTo(protocol string) (accept string) {
	h.r.Method = h.span(http.MethodGet)
	h.field("Connection", "Upgrade")
	h.field("Upgrade", protocol)
	h.r.Upgrade = true
	if !strings.EqualFold(protocol, "websocket") {
		return ""
	}
	for i := range h.r.Fields {
		if h.r.Fields[i].ID == http1.FieldSecWebSocketKey {
			return webSocketAccept(string(h.r.Fields[i].Value.Bytes(h.b)))
		}
	}
	key := webSocketKey()
	h.field("Sec-WebSocket-Key", key)
	return webSocketAccept(key)
}

// inline returns a body that is sent with the head: one small enough for the socket's buffer
// to take it while the server responds already.
func (f *forwarding) inline() ([]byte, bool) {
	b, whole := f.upload.Whole()
	return b, whole && len(b) <= 8<<10 && !f.client.r.Chunked && !f.client.r.ExpectContinue
}

// request1 returns the request for a server of HTTP/1. close ends its body.
func (f *forwarding) request1(p *pick) (*origin.Request, forward.Sent, *http1.Error) {
	head, sent, e := f.head(p)
	if e != nil {
		return nil, sent, e
	}
	q := &origin.Request{Head: head, Expected: sent.Expected, ResponseTimeout: f.u.o.ResponseTimeout,
		StallTimeout: f.u.o.StallTimeout, Limits: http1.DefaultLimits, Interim: f.interim1}
	if f.upload == nil {
		return q, sent, nil
	}
	if b, ok := f.inline(); ok {
		q.Inline = b
		return q, sent, nil
	}
	q.Body, q.Chunked, q.Length = f.upload.Cursor(), f.client.r.Chunked, f.client.r.ContentLength
	q.Trailer = f.trailerSection
	q.Continue = f.client.r.ExpectContinue
	return q, sent, nil
}
