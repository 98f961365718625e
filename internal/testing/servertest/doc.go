// Package servertest contains what tests of the server and of its connections share:
// waiting with a bound, sockets in pairs and in memory, a client that speaks
// bytes, requests as bytes, certificates, child processes, and the detection of
// leaks.
package servertest

// It depends on no server and no connection of one: packages below the server
// import it in their tests too. Package engines starts servers. Only tests
// import it.
