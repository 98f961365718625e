// Command chert serves folders over HTTP, and a demonstration, and makes certificates:
//
//	chert serve DIR
//	chert serve --config FILE
//	chert check FILE
//	chert cert NAME...
//	chert demo
//
// It turns a command line, and a configuration file, into a chert.Server with static.Handlers, prints where the server
// can be reached, and turns signals into a drain, a stop or a reload. "chert serve --help" lists the flags,
// docs/config.md describes the file.
//
// Exit codes: 0 after a clean stop, 1 after a failure (running requests cut off included), 2 for a wrong command line.
//
// # The way of a request
//
//	chert.Server -> front (counts, logs, knows the generation of the moment) -> sites (by host) -> static.Handler
//
// Each of them is a direct.Handler. A reload builds a new generation, that is sites and all below, and front puts it
// in place of the old, which is closed when its last request is done.
//
// The package knows flags, config and signals only. It must not know protocols, sockets' system calls, event loops or
// how files are sent: whatever a program that embeds chert could want as well belongs in the library. Nothing imports
// it.
package main
