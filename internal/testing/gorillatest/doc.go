// Package gorillatest makes gorilla/websocket read bytes, as the oracle of tests of
// frames and of messages.
package gorillatest
