package bridge

import (
	"context"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/sys"
)

// exchange is one request and its response: one allocation, not reused but with
// Server.ReuseRequests.
type exchange struct {
	req  http.Request
	url  url.URL
	ctx  reqContext
	body *body // nil when there is none
	res  response
	c    *Conn

	// places, target and method are where the placement's records are and what
	// they are kept under: the handler may change its request.
	places      *place.Table
	target      string
	method      place.Method
	minor       uint8
	isHEAD      bool
	keepAlive   bool // the request allows it
	expectOther bool
	// bodyDone: every byte of the request has been read, so an end of stream
	// means that the client is gone.
	bodyDone atomic.Bool
	// left: the client is gone.
	left atomic.Bool
	// late: that the handler cost a loop its driver has been noted.
	late atomic.Bool
	// reset: and does not listen either.
	reset atomic.Bool
	// deadlines: some were set and must not outlive the request.
	deadlines atomic.Bool

	// life is held by those who use the transport and may come late: other
	// goroutines than the one that runs Serve. It is taken last of all locks.
	life   sync.Mutex
	over   bool       // the connection is not this exchange's any more
	readBy *time.Time // the read deadline: ReadTimeout's or the handler's; nil for none
}

// use runs f while the connection is surely the exchange's, or reports false.
func (x *exchange) use(f func(t conn.Transport)) bool {
	x.life.Lock()
	defer x.life.Unlock()
	if x.over {
		return false
	}
	f(x.c.t)
	return true
}

// end is the last moment at which the connection is the exchange's.
func (x *exchange) end() {
	x.life.Lock()
	defer x.life.Unlock()
	x.over = true
}

// limitReads bounds reads on chert's own account. restore puts back what the
// handler has set.
func (x *exchange) limitReads(until time.Time) (restore func()) {
	x.use(func(t conn.Transport) {
		x.deadlines.Store(true)
		if by := x.readDeadline(); !by.IsZero() && by.Before(until) {
			until = by
		}
		t.SetReadDeadline(until)
	})
	return func() { x.use(func(t conn.Transport) { t.SetReadDeadline(x.readDeadline()) }) }
}

func (x *exchange) readDeadline() time.Time {
	if x.readBy == nil {
		return time.Time{}
	}
	return *x.readBy
}

// newExchange makes the request of a parsed head. It copies head once; all
// strings of the request are parts of that copy.
func (c *Conn) newExchange(h *http1.Request, head []byte) (*exchange, error) {
	var x *exchange
	var s string
	if c.cfg.ReuseRequests {
		c.block = blocks.Get().(*block)
		x, s = c.block.take(head)
	} else {
		x, s = new(exchange), string(head)
	}
	x.c = c
	x.ctx.x = x
	// The copy that WithContext makes is the one stored: it is inlined, so
	// nothing but x is allocated.
	x.req = *(&http.Request{}).WithContext(&x.ctx)
	r := &x.req
	r.Method = methodString(s[h.Method.Start:h.Method.End])
	r.RequestURI = s[h.Target.Start:h.Target.End]
	r.Proto, r.ProtoMajor, r.ProtoMinor = protoString(s, h), 1, int(h.Minor)
	r.URL = &x.url
	if err := parseTarget(r, h.Form); err != nil {
		return nil, err
	}
	if r.Host = x.url.Host; r.Host == "" && h.HasHost {
		// RFC 9112 section 3.2.2: the host of an absolute target wins.
		r.Host = s[h.Host.Start:h.Host.End]
	}
	r.RemoteAddr, r.TLS = c.t.Peer(), c.tls
	r.Close = !h.KeepAlive
	x.minor, x.keepAlive, x.expectOther = h.Minor, h.KeepAlive, h.ExpectOther
	x.isHEAD = r.Method == http.MethodHead
	if err := x.buildHeader(h, head, s); err != nil {
		return nil, err
	}
	x.initBody(h)
	if h.Preface {
		// As net/http gives it to handlers that take the connection over
		// (x/net/http2/h2c); who does not must not keep it.
		r.ProtoMajor, r.ProtoMinor, r.Proto = 2, 0, "HTTP/2.0"
		r.ContentLength, r.Close = -1, true
	}
	x.res.x = x
	if d := c.cfg.ReadTimeout; d > 0 {
		by := time.Now().Add(d)
		if c.headAt != 0 {
			by = by.Add(time.Duration(c.headAt - sys.Nanotime()))
		}
		x.readBy = &by
	}
	return x, nil
}

// buildHeader fills r.Header: all fields but those that net/http moves
// elsewhere (Host, and with chunked coding Transfer-Encoding and Trailer).
//
// The values are one array, a slice of it for each field. Go makes a map of up
// to eight entries in two allocations, a larger one in four.
func (x *exchange) buildHeader(h *http1.Request, head []byte, s string) error {
	r := &x.req
	header, values := x.headerSpace(len(h.Fields))
	r.Header = header
	for i := range h.Fields {
		f := &h.Fields[i]
		if f.ID == http1.FieldHost || f.ID == http1.FieldTransferEncoding {
			continue
		}
		key := f.ID.String()
		if key == "" {
			key = http1.CanonicalName(f.Name.Bytes(head), f.ID)
		}
		value := s[f.Value.Start:f.Value.End]
		if have, ok := header[key]; ok {
			header[key] = append(have, value)
			continue
		}
		if values == nil {
			values = make([]string, 0, len(h.Fields)-i)
		}
		// Behind a reused array that was too small, append moves: the earlier
		// fields keep the old one.
		n := len(values)
		values = append(values, value)
		header[key] = values[n : n+1 : n+1]
	}
	if b := x.c.block; b != nil {
		b.values = values
	}
	if p, ok := header["Pragma"]; ok && p[0] == "no-cache" {
		// RFC 7234 section 5.4, as net/http does it.
		if _, ok := header["Cache-Control"]; !ok {
			header["Cache-Control"] = []string{"no-cache"}
		}
	}
	if h.Chunked && h.HasTrailer {
		return declareRequestTrailers(r)
	}
	return nil
}

// headerSpace is what a header of n fields is built in.
func (x *exchange) headerSpace(n int) (http.Header, []string) {
	if b := x.c.block; b != nil {
		return b.header, b.values[:0]
	}
	return make(http.Header, max(n-1, 0)), nil
}

var errTrailerName = &http1.Error{Status: http.StatusBadRequest, Reason: "a field that trailers must not have is announced in Trailer"}

// declareRequestTrailers turns the Trailer field into the keys of r.Trailer.
func declareRequestTrailers(r *http.Request) error {
	for _, v := range r.Header["Trailer"] {
		for name := range strings.SplitSeq(v, ",") {
			name = textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name))
			switch name {
			case "":
				continue
			case "Transfer-Encoding", "Trailer", "Content-Length":
				// RFC 9110 section 6.5.1: framing must not be in trailers.
				return errTrailerName
			}
			if r.Trailer == nil {
				r.Trailer = make(http.Header)
			}
			r.Trailer[name] = nil
		}
	}
	delete(r.Header, "Trailer")
	return nil
}

// parseTarget fills r.URL from r.RequestURI.
func parseTarget(r *http.Request, form http1.Form) error {
	target := r.RequestURI
	if form == http1.FormOrigin && plainTarget(r.URL, target) {
		return nil
	}
	authority := form == http1.FormAuthority
	if authority {
		target = "http://" + target
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return errTarget
	}
	*r.URL = *u
	if authority {
		r.URL.Scheme = ""
	}
	return nil
}

var errTarget = &http1.Error{Status: http.StatusBadRequest, Reason: "the request target is not a URL"}

// plainTarget parses a target whose path needs no decoding, as nearly all do.
// Others are left to net/url.
func plainTarget(u *url.URL, target string) bool {
	for i := 0; i < len(target); i++ {
		b := target[i]
		if b == '?' {
			u.Path, u.RawQuery = target[:i], target[i+1:]
			u.ForceQuery = u.RawQuery == ""
			return true
		}
		if !plainPath[b] {
			return false
		}
	}
	u.Path = target
	return true
}

// plainPath are the bytes that mean themselves in a path and that net/url
// would write the same way, so that RawPath stays empty.
var plainPath = func() (t [256]bool) {
	for _, b := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~$&+,/:;=@") {
		t[b] = true
	}
	return t
}()

func methodString(m string) string {
	switch m {
	case http.MethodGet:
		return http.MethodGet
	case http.MethodPost:
		return http.MethodPost
	case http.MethodHead:
		return http.MethodHead
	}
	return m
}

func protoString(s string, h *http1.Request) string {
	switch h.Minor {
	case 1:
		return "HTTP/1.1"
	case 0:
		return "HTTP/1.0"
	}
	// One space follows the target, eight bytes are the version.
	return s[h.Target.End+1 : h.Target.End+9]
}

// setDeadlines applies ReadTimeout and WriteTimeout as the handler starts.
func (x *exchange) setDeadlines() {
	if x.readBy != nil {
		x.deadlines.Store(true)
		x.c.t.SetReadDeadline(*x.readBy)
	}
	if d := x.c.cfg.WriteTimeout; d > 0 {
		x.deadlines.Store(true)
		x.c.t.SetWriteDeadline(time.Now().Add(d))
	}
}

// watchPeer begins to look for a gone client, if all of the request has been
// read; else the body's end begins it.
func (x *exchange) watchPeer() {
	if x.bodyDone.Load() {
		x.use(conn.Transport.WatchPeer)
	}
}

// allRead notes that the whole request has been read.
func (x *exchange) allRead() {
	x.bodyDone.Store(true)
	if x.ctx.isWatched() {
		x.watchPeer()
	}
}

// gone tells the handler that the client has left.
func (x *exchange) gone() {
	x.left.Store(true)
	x.ctx.cancel(context.Canceled)
}

// hasBody reports whether the request came with one.
func (x *exchange) hasBody() bool { return x.body != nil }

// finish completes the response after the handler has returned and says what
// becomes of the connection.
func (x *exchange) finish() conn.Verdict {
	x.ctx.cancel(context.Canceled)
	if x.hasBody() {
		x.body.interrupt()
	}
	v := x.res.finish()
	if v == conn.Detached {
		return v
	}
	if x.hasBody() {
		x.body.Close()
		if !x.res.broken && (x.body.unfinished() || x.body.earlyClose) {
			v = conn.Linger
		}
	}
	if x.req.MultipartForm != nil {
		x.req.MultipartForm.RemoveAll()
	}
	x.end()
	x.dropDeadlines()
	return v
}

// hijack takes the connection from the transport. A goroutine of the handler
// that still reads the body is stopped first, and finds it closed.
func (x *exchange) hijack() (net.Conn, []byte, error) {
	if x.hasBody() {
		x.body.interrupt()
		x.body.mu.Lock()
		defer x.body.mu.Unlock()
	}
	x.life.Lock()
	defer x.life.Unlock()
	nc, rest, err := x.c.t.Hijack()
	if err == nil {
		x.over = true
		if x.hasBody() {
			x.body.closed.Store(true)
		}
	}
	return nc, rest, err
}

// abort ends the connection after a handler's panic. What was already sent
// towards the wire goes out, so that the client sees how far it came.
func (x *exchange) abort() conn.Verdict {
	x.ctx.cancel(context.Canceled)
	if x.hasBody() {
		x.body.interrupt()
	}
	v := x.res.abort()
	if v != conn.Detached && x.hasBody() {
		if x.body.unfinished() {
			v = conn.Linger
		}
		x.body.invalidate()
	}
	x.end()
	return v
}

func (x *exchange) dropDeadlines() {
	if x.deadlines.Load() {
		x.c.t.SetReadDeadline(time.Time{})
		x.c.t.SetWriteDeadline(time.Time{})
	}
}
