// Package servertest contains what tests of the server and of its connections share:
// waiting with a bound, pairs of sockets, a client that speaks lines, and the
// detection of leaks.
package servertest

// It knows no protocol and no connection of the server. Only tests import it.
