// Package freeport finds ports for servers that are told theirs before they listen, such as those in
// other processes, and for those that need the same port for TCP and UDP.
package freeport

// It depends on no other package of the module. Tests and the lab import it.
