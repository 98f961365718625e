package bridge

import (
	"net/http"

	"github.com/chert-http/chert/internal/takeover"
)

// hijackable is what a handler writes to that has its connection to itself.
type hijackable struct{ *Response }

// streamWriter is it for requests that share their connection with others: no http.Hijacker, and an http.Pusher that
// does not push, as net/http's is for HTTP/2.
type streamWriter struct{ *Response }

func (w streamWriter) Push(string, *http.PushOptions) error { return http.ErrNotSupported }

var (
	_ http.Hijacker     = hijackable{}
	_ http.Pusher       = streamWriter{}
	_ takeover.Writer   = streamWriter{}
	_ takeover.Budgeted = streamWriter{}
	_ takeover.Streamer = streamWriter{}
)
