package bridge

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http1"
)

// Config is what connections need to know of their server. It is immutable
// once a connection exists.
type Config struct {
	Handler http.Handler
	// GeneralOptions answers "OPTIONS *" without the handler.
	GeneralOptions bool
	Head           http1.Limits
	// ReadTimeout and WriteTimeout are http.Server's; 0 is none.
	ReadTimeout, WriteTimeout time.Duration
	// BaseContext is the parent of every request's context. Never nil.
	BaseContext context.Context
	ConnContext func(ctx context.Context, c net.Conn) context.Context
	ConnState   func(net.Conn, http.ConnState)
	// HTTPServer is what http.ServerContextKey gives.
	HTTPServer *http.Server
	// KeepAlives reports whether connections may be kept now.
	KeepAlives func() bool
	Logf       func(format string, args ...any)
	// Shared is for connections on loops.
	Shared conn.Shared
}

// maxDrain is how much of an unread body is read to keep the connection;
// net/http's value.
const maxDrain = 256 << 10
