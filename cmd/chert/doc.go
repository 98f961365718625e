// Command chert serves folders over HTTP, forwards requests to other servers, and makes certificates:
//
//	chert serve DIR
//	chert serve --config FILE
//	chert proxy ADDR...
//	chert check FILE
//	chert hash-password
//	chert cert NAME...
//	chert demo
//
// It turns a command line, and a configuration file, into a chert.Server with static.Handlers, prints where the server
// can be reached, and turns signals into a drain, a stop or a reload. "chert serve --help" lists the flags,
// docs/config.md describes the file.
//
// Exit codes: 0 after a clean stop, 1 after a failure (running requests cut off included), 2 for a wrong command line.
//
// # The path of a request
//
//	chert.Server -> front (counts, logs, has the current generation) -> sites (by host) -> static.Handler
//	                                      of a site with routes: -> router.Router -> access, authentication -> action
//	                                      that forwards: -> forwarder -> proxy.Handler, with the process's proxy.Pool
//
// Each of them is a direct.Handler. A reload builds a new generation, that is sites and everything below, and front
// replaces the old one with it, which is closed when its last request is done.
package main

// The package handles flags, configuration and signals only. It must not depend on protocols, the system calls of
// sockets, event loops or the sending of files: anything that a program that embeds chert may need belongs in the
// library.
