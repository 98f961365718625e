package testhook

import (
	"context"
	"os"
	"time"

	"github.com/chert-http/chert/internal/conn"
)

// Server is a *chert.Server seen from inside. Layer and DrainFor are called before
// it serves, the others at any time.
type Server interface {
	// Layer has connections on loops go through what f makes.
	Layer(f func() conn.Layer)
	// DrainFor bounds how long a body is drained that its handler does not read.
	DrainFor(d time.Duration)
	// Handshakes bounds how many TLS handshakes on loops compute at a time, and how
	// many have a goroutine. It is called before s serves.
	Handshakes(slots, places int)
	// Run is chert.Run with the signals to act on.
	Run(ctx context.Context, grace time.Duration, serve []func() error, signals <-chan os.Signal) error
	// KeepAlives is what SetKeepAlivesEnabled has set.
	KeepAlives() bool
	// Ending reports whether Shutdown or Close has been called.
	Ending() bool
	// Stopping is what chert.Stopping gives handlers.
	Stopping() <-chan struct{}
	// Conns is how many connections count for MaxConns.
	Conns() int
	// Waiting is how many requests wait for one of MaxHandlers.
	Waiting() int
}

// Of takes a *chert.Server.
var Of func(server any) Server
