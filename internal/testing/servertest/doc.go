// Package servertest contains what tests of the server and of its connections share:
// waiting with a bound, sockets in pairs and in memory, a client that speaks
// bytes, requests as bytes, certificates, child processes, and the detection of
// leaks.
package servertest

// It knows no server and no connection of one: tests of packages that the server
// consists of import it too. What starts a server is in package engines. Only tests
// import it.
