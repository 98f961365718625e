// Package exec calls user code: handlers, hooks, and the methods of values that
// programs pass to the server. It is where a panic of theirs ends, or is noticed
// that they end their goroutine (runtime.Goexit).
package exec

// It knows nothing of connections, loops and requests; every package that calls user
// code may import it.
