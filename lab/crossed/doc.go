// Package crossed counts the functions of chert that one request crosses: a measure of how much one has to read to
// follow it, and of how much there is to run. The compiler's own counters of statements do it, for a server that serves
// requests one after the other.
package crossed
