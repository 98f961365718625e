// Package websocket opens WebSocket connections (RFC 6455) that cost no goroutine
// while they are idle.
package websocket
