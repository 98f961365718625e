package wrap

import (
	"iter"
	"net/http"
)

// Layers iterates over w and the response writers that it wraps, as their methods Unwrap say; the last one is the
// server's.
func Layers(w http.ResponseWriter) iter.Seq[http.ResponseWriter] {
	return func(yield func(http.ResponseWriter) bool) {
		for yield(w) {
			u, ok := w.(interface{ Unwrap() http.ResponseWriter })
			if !ok {
				return
			}
			w = u.Unwrap()
		}
	}
}

// LeaveErrors tells the ErrorPages around w that the body of an error stays as it is.
func LeaveErrors(w http.ResponseWriter) {
	for w := range Layers(w) {
		if h, ok := w.(interface{ Hook() Hook }); ok {
			if p, ok := h.Hook().(interface{ LeaveErrors() }); ok {
				p.LeaveErrors()
			}
		}
	}
}

// Innermost returns the writer that wraps no other: the server's. Package
// net/http finds by type assertion there what it cannot ask others.
func Innermost(w http.ResponseWriter) (last http.ResponseWriter) {
	for w := range Layers(w) {
		last = w
	}
	return last
}

// CloseNotify returns w's channel, or one that is never written to if w is no
// http.CloseNotifier.
func CloseNotify(w http.ResponseWriter) <-chan bool {
	//lint:ignore SA1019 frameworks still use it
	if n, ok := w.(http.CloseNotifier); ok {
		return n.CloseNotify()
	}
	return make(chan bool)
}
