// Package peer keeps the address of a client, and its text while the client is active.
package peer

// Of a million connections most are idle: the text of an address would be a second object for
// each, and what the garbage collector marks is counted in objects. An active client's text is
// there, since each request needs it.
//
// It imports no other package of the project.
