// Package websocket tests package websocket on all engines and on net/http's server,
// with frames as bytes on sockets.
package websocket
