// Package work does the work of the handlers under test, whatever the server: texts, values, sleeping and computing.
// The servers in cmd import it, and the profiles take the expected responses from it.
package work

// It knows nothing of HTTP.
