// Package rival knows the servers that are compared: how each is started, with the same answer to the same request.
//
// A rival is a Spec: a name and a function that makes its command line, and writes its configuration where it needs
// one. Start does the rest alike for all: a free port, its cores, waiting for the first answer. To add a server, write
// its Spec and enter it in the table of spec.go.
//
// Revision builds chert's servers from another state of its source, to run beside the present ones.
//
// It measures nothing.
package rival
