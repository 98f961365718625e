// Package backlog is a bounded queue of what is to be written to a store that does not respond: it is
// written in order when the store does again.
package backlog

// It knows no store. Packages that publish through one are its users. It imports nothing of the
// project.
