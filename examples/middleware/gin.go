package main

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
)

// ginned adapts any func(http.Handler) http.Handler to gin: the handler that it
// wraps is the rest of gin's chain. Copy this file; gin needs nothing else.
//
//	r := gin.New()
//	r.SetTrustedProxies(nil) // RealIP finds out the address, for c.ClientIP too
//	r.Use(ginned(middleware.Must(middleware.Compress(nil))), ginned(middleware.ETag(nil)))
//
// Handlers inside of m see its request and its response writer as c.Request and
// c.Writer; when m returns, c has the outer ones back. If m does not pass the
// request on, or has recovered a panic, the rest of the chain is not run. What
// gin itself writes when the chain has returned, the text of its 404 and 405,
// does not go through m: only the status does. Use r.NoRoute to respond
// instead.
func ginned(m func(http.Handler) http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		outer, request, returned := c.Writer, c.Request, false
		status := outer.Status() // not later: Timeout may be responding
		// Also after a panic: gin.Recovery, outside, responds with c.Writer.
		defer func() { c.Writer, c.Request = outer, request }()
		m(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			inner := &ginWriter{ResponseWriter: w, outer: outer, status: status, size: unwritten}
			c.Writer, c.Request = inner, r
			c.Next()
			returned = true
			inner.end()
		})).ServeHTTP(outer, request)
		if !returned {
			c.Abort()
		}
	}
}

// unwritten is gin's size of a response that has not begun.
const unwritten = -1

// ginWriter is a gin.ResponseWriter that wraps a middleware's. Like gin's own
// it sends the status with the body: handlers set fields after the status.
type ginWriter struct {
	http.ResponseWriter
	outer  gin.ResponseWriter
	status int
	size   int
}

// end sends a status without a body.
func (g *ginWriter) end() {
	if g.status != http.StatusOK {
		g.WriteHeaderNow()
	}
}

func (g *ginWriter) WriteHeader(code int) {
	if code > 0 && !g.Written() {
		g.status = code
	}
}

func (g *ginWriter) WriteHeaderNow() {
	if !g.Written() {
		g.size = 0
		g.ResponseWriter.WriteHeader(g.status)
	}
}

func (g *ginWriter) Write(p []byte) (int, error) {
	g.WriteHeaderNow()
	n, err := g.ResponseWriter.Write(p)
	g.size += n
	return n, err
}

func (g *ginWriter) WriteString(s string) (int, error) {
	g.WriteHeaderNow()
	n, err := io.WriteString(g.ResponseWriter, s)
	g.size += n
	return n, err
}

func (g *ginWriter) Flush() { g.FlushError() }

// FlushError is called by http.ResponseController.
func (g *ginWriter) FlushError() error {
	g.WriteHeaderNow()
	return http.NewResponseController(g.ResponseWriter).Flush()
}

func (g *ginWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(g.ResponseWriter).Hijack()
	if err == nil && !g.Written() {
		g.size = 0 // nothing is sent any more
	}
	return c, rw, err
}

func (g *ginWriter) Status() int                 { return g.status }
func (g *ginWriter) Size() int                   { return g.size }
func (g *ginWriter) Written() bool               { return g.size != unwritten }
func (g *ginWriter) CloseNotify() <-chan bool    { return g.outer.CloseNotify() }
func (g *ginWriter) Pusher() http.Pusher         { return g.outer.Pusher() }
func (g *ginWriter) Unwrap() http.ResponseWriter { return g.ResponseWriter }
