// Package work is what the handlers of the servers under test do, whatever the server: texts, values, sleep,
// computing. The servers in cmd import it, and the profiles take the expected answers from it.
//
// It knows nothing of HTTP.
package work
