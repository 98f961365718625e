package wire

import (
	"net/http"
	"time"
)

// Arrived returns when the request that w responds to arrived: when the server began
// to read its head, before it waited for a goroutine or a slot. It reports false if no
// writer inside of w, by Unwrap, knows that: on servers other than chert, and for
// requests that the server does not time. It does not allocate.
func Arrived(w http.ResponseWriter) (t time.Time, ok bool) {
	for {
		switch v := w.(type) {
		case interface{ Arrived() (time.Time, bool) }:
			return v.Arrived()
		case interface{ Unwrap() http.ResponseWriter }:
			w = v.Unwrap()
		default:
			return t, false
		}
	}
}
