package websocket

import (
	"crypto/sha1"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/link"
	"github.com/chert-http/chert/internal/rfc/field"
	"github.com/chert-http/chert/internal/roster"
	"github.com/chert-http/chert/internal/takeover"
	"github.com/chert-http/chert/internal/wsdeflate"
	"github.com/chert-http/chert/internal/wsframe"
)

// A Handler is an http.Handler that opens WebSocket connections and calls the
// functions of its [Options]. Make it with [New].
type Handler struct {
	o          Options // as they were given
	origins    []origin
	limits     wsframe.Limits
	maxUnsent  int
	ping, idle int64 // nanoseconds; 0 for none
	threshold  int
	params     wsdeflate.Params
	kind       string // of the user code, for its placement

	mu     sync.Mutex
	conns  roster.Roster[Conn] // that have not ended
	closed bool
}

// kinds counts Handlers: each has records of its own for where its code runs.
var kinds atomic.Uint64

// ServeHTTP implements http.Handler. It answers requests that are no correct opening
// handshake, or come from a foreign origin, with an error. Otherwise it returns when
// the connection has been opened, and the request's context ends then, or when
// Options.Serve has returned and the connection has ended.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := h.upgrade(w, r)
	if c == nil {
		return
	}
	h.add(c)
	if h.o.Serve != nil {
		h.serveAlone(c, r)
		return
	}
	exec.Finish(func() {
		if h.o.OnOpen != nil {
			h.o.OnOpen(c, r)
		}
	}, func(returned bool) {
		if !returned {
			c.failed(errInternal)
			c.link.Post(func() link.Next { return link.Linger })
		}
		if l, ok := c.link.(*netLink); ok && r.ProtoMajor >= 2 {
			l.run() // the stream ends with the handler
		} else if ok {
			go l.run()
		}
	})
}

// add makes c one of the handler's connections, unless it has ended meanwhile, and closes it
// if the handler has been closed.
func (h *Handler) add(c *Conn) {
	h.mu.Lock()
	c.mu.Lock()
	if !c.ended { // otherwise remove has been called
		c.index = int32(h.conns.Add(c))
	}
	c.mu.Unlock()
	closed := h.closed
	h.mu.Unlock()
	if closed {
		c.Close(CodeGoingAway, "")
	}
}

// remove is called when c has ended.
func (h *Handler) remove(c *Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if moved, _ := h.conns.Remove(int(c.index), c); moved != nil {
		moved.index = c.index
	}
}

// Len returns how many connections are open.
func (h *Handler) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.conns.Len()
}

// Close closes all connections with CodeGoingAway, as Conn.Close does, and further requests
// are answered 503. It does not wait. It is for http.Server.RegisterOnShutdown; chert's
// Shutdown does the same by itself, but for connections of Options.Serve.
func (h *Handler) Close() {
	h.mu.Lock()
	h.closed = true
	all := h.conns.Snapshot()
	h.mu.Unlock()
	for c := range all.All() {
		c.Close(CodeGoingAway, "")
	}
}

func (h *Handler) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// refusal is why a request is not upgraded.
type refusal struct {
	status int
	text   string
}

// upgrade opens a connection, or answers the request with an error. It returns nil if there is none.
func (h *Handler) upgrade(w http.ResponseWriter, r *http.Request) *Conn {
	c := &Conn{h: h}
	tunnel := r.ProtoMajor >= 2
	accept, no := h.check(r)
	if no == nil && h.isClosed() {
		no = &refusal{http.StatusServiceUnavailable, "the endpoint is closed"}
	}
	t := takeover.Find[takeover.Writer](w)
	if h.o.Serve != nil {
		t = nil
	}
	if no == nil && t == nil && !tunnel && !hijackable(w) {
		no = &refusal{http.StatusInternalServerError, "the http.ResponseWriter has no Hijack"}
	}
	extensions := ""
	if no == nil && h.o.Compression != nil {
		p, agreed, err := wsdeflate.Negotiate(r.Header["Sec-Websocket-Extensions"], h.params)
		if err != nil {
			// RFC 6455 section 9.1: the connection MUST be failed.
			no = &refusal{http.StatusBadRequest, err.Error()}
		} else if extensions = agreed; extensions != "" {
			c.deflate = &deflate{params: p}
			c.reader.Deflate = true
		}
	}
	if no != nil {
		no.answer(w)
		return nil
	}
	header, status := w.Header(), http.StatusOK
	if !tunnel {
		status = http.StatusSwitchingProtocols
		header.Set("Upgrade", "websocket")
		header.Set("Connection", "Upgrade")
		header.Set("Sec-WebSocket-Accept", accept)
	}
	if c.subprotocol = h.choose(r); c.subprotocol != 0 {
		header.Set("Sec-WebSocket-Protocol", c.Subprotocol())
	}
	if extensions != "" {
		header.Set("Sec-WebSocket-Extensions", extensions)
	}
	if b := takeover.BudgetOf(w); b != nil && tunnel && h.limits.Message > 0 {
		c.shares, c.rare = true, &rare{beside: beside{budget: b}}
	}
	var err error
	switch {
	case t != nil:
		w.WriteHeader(status)
		err = t.TakeOver(func(l takeover.Link) takeover.Session {
			c.link = l
			return (*session)(c)
		})
	case tunnel:
		err = useStream(w, r, c)
	default:
		err = hijack(w, c)
	}
	if err != nil {
		return nil
	}
	return c
}

// answer answers a request that is not upgraded.
func (e *refusal) answer(w http.ResponseWriter) {
	switch e.status {
	case http.StatusUpgradeRequired:
		// RFC 9110 section 15.5.22, and RFC 6455 section 4.4.
		w.Header().Set("Upgrade", "websocket")
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Sec-WebSocket-Version", "13")
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", http.MethodGet)
	}
	http.Error(w, "websocket: "+e.text, e.status)
}

// check checks the client's opening handshake (RFC 6455 section 4.2.1) and origin, and
// returns the value of Sec-WebSocket-Accept.
func (h *Handler) check(r *http.Request) (accept string, no *refusal) {
	keys := r.Header["Sec-Websocket-Key"]
	if r.ProtoMajor >= 2 && r.Method == http.MethodConnect {
		return "", h.checkConnect(r)
	}
	switch {
	case r.Method != http.MethodGet:
		return "", &refusal{http.StatusMethodNotAllowed, "the method is not GET"}
	case r.ProtoMajor >= 2:
		// Not 426, which must have Upgrade (RFC 9110 section 15.5.22): there is none (RFC 9113 section 8.2.2).
		return "", &refusal{http.StatusBadRequest, "the request is no extended CONNECT"}
	case !r.ProtoAtLeast(1, 1) || !field.HasToken(list(r, "Connection"), "upgrade") ||
		!field.HasToken(list(r, "Upgrade"), "websocket"):
		return "", &refusal{http.StatusUpgradeRequired, "the request is no upgrade to websocket"}
	case len(r.Header["Sec-Websocket-Version"]) != 1 || r.Header.Get("Sec-Websocket-Version") != "13":
		return "", &refusal{http.StatusUpgradeRequired, "the version is not 13"}
	case r.ContentLength != 0:
		// Its end, and so where frames begin, would depend on which server reads it.
		return "", &refusal{http.StatusBadRequest, "the request has a body"}
	case len(keys) != 1:
		return "", &refusal{http.StatusBadRequest, "there is not one Sec-WebSocket-Key"}
	case !h.allows(r):
		return "", &refusal{http.StatusForbidden, "the origin is not allowed"}
	}
	if key, err := base64.StdEncoding.DecodeString(keys[0]); err != nil || len(key) != 16 {
		return "", &refusal{http.StatusBadRequest, "Sec-WebSocket-Key is not of 16 bytes"}
	}
	sum := sha1.Sum([]byte(keys[0] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:]), nil
}

// checkConnect is check for extended CONNECT (RFC 8441 section 5, RFC 9220), which has no key.
func (h *Handler) checkConnect(r *http.Request) *refusal {
	switch p := r.Header[":protocol"]; {
	case len(p) != 1 || p[0] != "websocket":
		return &refusal{http.StatusNotImplemented, "the request is for another protocol"}
	case r.Header.Get("Sec-Websocket-Version") != "13" || len(r.Header["Sec-Websocket-Version"]) != 1:
		return &refusal{http.StatusBadRequest, "the version is not 13"}
	case r.ContentLength == 0:
		return &refusal{http.StatusBadRequest, "the stream has ended"}
	case !h.allows(r):
		return &refusal{http.StatusForbidden, "the origin is not allowed"}
	}
	return nil
}

// allows reports whether the page that sends the request may (RFC 6455 section 10.2).
func (h *Handler) allows(r *http.Request) bool {
	values := r.Header["Origin"]
	if len(values) == 0 {
		return true
	}
	u, err := url.Parse(values[0])
	if err != nil || len(values) > 1 {
		return false
	}
	host := strings.ToLower(u.Host)
	if host != "" && host == strings.ToLower(r.Host) {
		return true
	}
	for i := range h.origins {
		if h.origins[i].allows(u, host) {
			return true
		}
	}
	return false
}

// choose returns which subprotocol is used, from 1, or 0.
func (h *Handler) choose(r *http.Request) uint8 {
	for i, p := range h.o.Subprotocols {
		for offered := range strings.SplitSeq(list(r, "Sec-Websocket-Protocol"), ",") {
			if strings.Trim(offered, " \t") == p {
				return uint8(i + 1)
			}
		}
	}
	return 0
}

// list returns a field that may have several lines, which are one list (RFC 9110 section 5.3). name is canonical.
func list(r *http.Request, name string) string { return strings.Join(r.Header[name], ",") }
