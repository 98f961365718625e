// Package servertest has what tests of the server and of its connections share:
// waiting with a bound, sockets in pairs, a client that speaks lines, and the
// search for what a package's tests leave behind.
//
// It knows no protocol and no connection of the server. Tests alone import it.
package servertest
