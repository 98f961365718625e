package accept

import (
	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/sys"
)

// Refusal is the response to a connection beyond the limits.
func Refusal() []byte {
	const head = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"
	b := bridge.AppendDate([]byte(head), sys.Nanotime())
	return append(b, "Retry-After: 1\r\nContent-Length: 24\r\nConnection: close\r\n\r\n503 Service Unavailable\n"...)
}

// Alert is Refusal for a client that begins with a handshake: the alert
// internal_error, for "an internal error unrelated to the peer" (RFC 8446 section
// 6.2). A handshake only to send 503 would cost most when there is least to spare.
func Alert() []byte {
	const alert, fatal, internalError = 21, 2, 80
	return []byte{alert, 3, 3, 0, 2, fatal, internalError}
}
