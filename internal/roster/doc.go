// Package roster is a list of many members of which none is ever moved in bulk: to add one, to
// remove one and to take a snapshot for a broadcast each take a few microseconds at most, also
// with a million members.
package roster

// It imports no other package of the project. The lists of WebSockets, rooms, event streams and
// topics are its users.
