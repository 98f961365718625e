// Package child starts the programs a measurement needs (servers, wrk) and ends them again.
//
// Every child leads a process group of its own. It gets no Ctrl-C from the terminal: the lab hears it, cancels its
// context, and the context ends all children, grandchildren included. On Linux the kernel also ends a child whose lab
// was killed outright.
//
// It knows nothing of HTTP. Everything else in the lab may import it.
package child
