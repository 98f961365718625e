// Package filename has the syntax of what static.Options say about names: patterns of files
// (Rule.Match, Hidden), what is tried for a path (Try), the ends of names (Types) and the
// folders that links may lead into (Follow). Package static serves by it, and a program that
// reads such options from a file checks one at a time.
//
// Names are paths below the folder that is served, with slashes and without one at their
// begin. Errors have the text that is wrong and no prefix. All of it is safe for concurrent
// use.
package filename

// Without files and without a system, but for whether links can be followed on it.
