// Package chertest runs a chert.Server for a test, in the shape of
// net/http/httptest: change httptest.NewServer to chertest.NewServer and the
// test runs on chert.
//
//	srv := chertest.NewServer(handler)
//	defer srv.Close()
//	res, err := srv.Client().Get(srv.URL)
//
// It differs from httptest in three ways. Config is a *chert.Server, so zero
// means the default there and a negative value means none. After StartTLS,
// Listener is still the plain listener. CloseClientConnections, called by a
// handler, asks for the end of its connection: a response that it sends at once
// may arrive whole. For a client to see a lost connection, a handler panics with
// http.ErrAbortHandler.
//
// The parts of httptest that need no server, such as NewRecorder and NewRequest,
// work with chert as they are.
package chertest

// It must not know how chert drives a connection: it uses only the exported API of
// the root package. Tests may import it, of this module and of others.
