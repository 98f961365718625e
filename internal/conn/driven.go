package conn

import "github.com/chert-http/chert/stats"

// A Driven is a connection that is not on a loop, as its server has it. Its methods are safe for
// concurrent use.
type Driven interface {
	// Drain ends the connection if it is idle, and lets it finish its requests otherwise. It may
	// be called repeatedly.
	Drain()
	// CloseIdle ends the connection if it is idle, and leaves it alone otherwise.
	CloseIdle()
	// Kill ends the connection immediately; calls of user code that runs on it fail.
	Kill()
	// Spare reports whether the connection could give way to another, and since when, of
	// sys.Nanotime. GiveWay ends it soon if it still could.
	Spare() (since int64, ok bool)
	GiveWay() bool
	// Active reports whether the connection has a request in progress, or a part of one.
	Active() bool
	// Inspect describes the connection, and says since when it waits; 0 if it does not.
	Inspect() (c stats.Connection, since int64)
	// Running calls f for the requests in progress that began before a time.
	Running(before int64, f func(r stats.Request, since int64))
}
