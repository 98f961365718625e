// Package exchange defines a request and the response that every server must give to it; it sends the request and
// compares the response.
package exchange

// It knows nothing of servers or load; rival and load import it, so that what is checked is what is measured.
