// Package eventstream tests package eventstream on all engines and on net/http's server,
// with responses as bytes on sockets.
package eventstream
