// Command chert serves a folder over HTTP:
//
//	chert serve DIR
//
// It turns a command line into a chert.Server, prints where the server can be reached, and turns signals into a
// drain or a stop. "chert serve --help" lists the flags.
//
// Exit codes: 0 after a clean stop, 1 after a failure (running requests cut off included), 2 for a wrong command line.
//
// The package knows flags, config and signals only. It must not know protocols, sockets' system calls, event loops or
// how files are sent: whatever a program that embeds chert could want as well belongs in the library. Nothing imports
// it.
package main
