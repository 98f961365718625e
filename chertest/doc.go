// Package chertest runs a chert.Server for a test, in the shape of
// net/http/httptest: change httptest.NewServer to chertest.NewServer and the
// test runs on chert.
//
//	srv := chertest.NewServer(handler)
//	defer srv.Close()
//	res, err := srv.Client().Get(srv.URL)
//
// It differs from httptest in two things. Config is a *chert.Server, so 0 is
// a default there and a negative value is none. After StartTLS, Listener is still
// the plain listener.
//
// What httptest has beside its Server, such as NewRecorder and NewRequest,
// needs no server and works for chert's users as it is.
//
// It must not know how chert drives a connection: it uses what every user of
// the root package has. Tests may import it, of this module and of others.
package chertest
