// Package exchange is one request and the answer every server must give to it, and sends the one to compare the other.
//
// It knows nothing of servers or load; rival and load import it, so that what is checked is what is measured.
package exchange
