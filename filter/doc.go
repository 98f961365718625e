// Package filter makes middleware from one function that decides about a
// request, for net/http and for chert's fast path alike:
//
//	closed := filter.New(func(c *filter.Call) filter.Outcome {
//		if bytes.HasPrefix(c.Path(), []byte("/internal/")) && !c.HasHeader("X-Team") {
//			return c.Refuse(forbidden)
//		}
//		c.SetHeader("X-Checked", "1")
//		return filter.Pass
//	})
//	http.ListenAndServe(":8080", closed(mux))
//
// The result is a func(http.Handler) http.Handler and works on every server and
// in every router. Around a direct.Handler it makes a direct.Handler, so a
// chain of filters keeps the fast path. The function is called at most once for
// each request on each path: if it, an inner handler or outer middleware leaves
// the request to the ordinary path, it is called again there.
//
// [Around] makes a filter that also runs after the handler. Middleware that
// changes the response itself, such as compression, needs a ResponseWriter of
// its own on the ordinary path and is no filter.
//
// On the fast path the filter runs on an event loop and must not block. A
// filter that has to wait, for a database or a slow hash, returns [OnPlain] if
// [Call.Direct] is true, and decides when it is called again.
package filter
