// Package freeport reserves TCP ports for servers that are told theirs before they
// listen, such as those in other processes.
package freeport

// It depends on no other package of the module. Tests and the lab import it.
