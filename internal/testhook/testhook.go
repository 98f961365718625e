package testhook

import (
	"context"
	"os"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/poll"
)

// Server is a *chert.Server seen from inside. Layer and DrainFor are called before
// it serves, the others at any time.
type Server interface {
	// Layer has connections on loops go through what f makes.
	Layer(f func() conn.Layer)
	// DrainFor bounds how long a body is drained that its handler does not read.
	DrainFor(d time.Duration)
	// Frugal has what clients of HTTP/2 may do in vain not grow with time. It is called before the server serves.
	Frugal()
	// Kernel puts k in place of the system's sockets for listeners of Server.Listen. It is
	// called before the server serves.
	Kernel(k *Kernel)
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

// A Kernel has sockets of its own.
type Kernel struct {
	Loops   int                         // how many event loops run
	Poller  func() (poll.Poller, error) // makes each loop's poller
	Sockets func(n int) ([]int, error)  // opens a listening socket for each of n loops
}

// Of takes a *chert.Server.
var Of func(server any) Server
