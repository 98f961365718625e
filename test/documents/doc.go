// Package documents follows the pages for users: it compiles their Go, checks their
// configurations, parses the flags of their commands, and runs their sessions in a
// terminal, each in order. It contains tests only.
//
// A block of a page is checked by its language:
//
//   - go: go vet, in a module outside of the checkout. What is no file is put into one,
//     with its imports; a block of statements into a function.
//   - toml: chert check. nginx and caddyfile: chert adapt, and chert check of the result.
//   - console: commands after "$ ", run by bash in a folder that lasts until the next
//     heading of the second level (of a page with the marker session, to its end), and in
//     which chert is the checkout. The lines after a command are its output, in which "..."
//     stands for anything in a line, and alone for any lines; a command without lines
//     may print what it likes.
//   - ini and json: their grammar. text, log: nothing.
//   - indented lines: commands, each with a comment after two spaces. Of chert the flags
//     are parsed, of go and make the folders and targets must exist.
//
// Comments before a block change that, each in a line of its own:
//
//	<!-- skip: REASON -->         it is not checked
//	<!-- file: NAME -->           it is a file of the session
//	<!-- given: DECLARATIONS -->  Go that it needs, or TOML
//	<!-- exit: CODE -->           the status of the last command, if that is not 0
//	<!-- terminal: NAME -->       its one command goes on, in a terminal of its own
//	<!-- interrupt: NAME -->      Ctrl-C in that terminal; the command must end with 0
//	<!-- shows: NAME -->          the end of what that terminal shows by now
//	<!-- needs: PROGRAM -->       skipped where the program is not installed
//	<!-- session -->              the page is one session
package documents
