package main

import (
	"crypto/sha1"
	"encoding/base64"
)

// acceptKey is the answer to a WebSocket handshake: RFC 6455, section 4.2.2.
func acceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}
