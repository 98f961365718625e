// Package successor replaces the running process by a new one that serves on the same listening
// sockets. The new process, its successor, is the program that is now at the path of the running
// one, with the same arguments. The old one goes on serving until its successor has reported that
// it is ready and has lived for a while since; if it fails, nothing has changed.
//
// The two processes share the open sockets, with what waits in their queues, so at no time is a
// connection refused or lost.
package successor

// It knows descriptors and processes, and nothing of HTTP. What it passes is described by
// docs/adr/0056-upgrade-by-a-successor.md. The root and the command use it.
