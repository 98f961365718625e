// Package servertest has what tests of the server and of its connections share:
// waiting with a bound, sockets in pairs and in memory, a client that speaks
// bytes, requests as bytes, certificates, processes, and the search for what a
// package's tests leave behind.
//
// It knows no server and no connection of one: tests of packages that the server
// is made of import it too. What starts a server is in package engines.
package servertest
