// Package child starts the programs that a measurement needs (servers, wrk) and terminates them.
//
// Every child leads a process group of its own. It gets no Ctrl-C from the terminal: the lab handles the signal,
// cancels its context, and the context ends all children, grandchildren included. On Linux the kernel also kills a
// child if the lab itself is killed.
package child

// It knows nothing of HTTP. Everything else in the lab may import it.
