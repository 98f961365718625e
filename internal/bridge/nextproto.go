package bridge

import (
	"context"
	"crypto/tls"
	"net/http"

	"github.com/chert-http/chert/internal/exec"
)

// HandshakeContext returns the context of a TLS handshake, for the functions of
// a tls.Config.
func (c *Client) HandshakeContext() context.Context { return clientContext{c.context(), c} }

// NextProto passes a TLS connection to the protocol that ALPN has selected: an
// entry of http.Server's TLSNextProto. It returns when serve does. The caller
// closes the connection and calls Closed.
func (c *Client) NextProto(tc *tls.Conn, serve func(*http.Server, *tls.Conn, http.Handler)) {
	ctx, cancel := context.WithCancel(clientContext{c.context(), c})
	defer cancel()
	exec.Call(func() { serve(c.HTTPServer(), tc, nextProtoHandler{c, ctx, tc}) }, c.LogEnd)
}

// nextProtoHandler is the server's handler for requests of another protocol. It
// fills in what that protocol's server may have left empty.
type nextProtoHandler struct {
	c   *Client
	ctx context.Context
	tc  *tls.Conn
}

// BaseContext lets x/net/http2 find the parent of its requests' contexts.
func (h nextProtoHandler) BaseContext() context.Context { return h.ctx }

func (h nextProtoHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.TLS == nil {
		state := h.tc.ConnectionState()
		r.TLS = &state
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	// A peer that has named its unix socket is still "@".
	if peer := h.c.Link.Peer().RemoteAddr; r.RemoteAddr == "" || peer == "@" {
		r.RemoteAddr = peer
	}
	h.c.handler(r).ServeHTTP(w, r)
}
