// Package rival defines the servers that are compared and starts them, each with the same response to the same request.
//
// A rival is a Spec: a name and a function that builds its command line, and writes its configuration where it needs
// one. Start does the rest, the same for all: a free port, its cores, waiting for the first response. To add a server,
// write its Spec and add it to the table in spec.go.
//
// Revision builds chert's servers from another revision of its source, to run beside the current ones.
package rival

// It measures nothing.
