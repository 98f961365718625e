// Package engines runs a test on each engine of the server and, where the
// behaviour should be net/http's, on that too; and it starts servers for tests.
//
// With CHERT_LAYER=1 connections on loops go through a conn.Layer that changes
// every byte, and clients through a relay with the other side of the layer; with
// CHERT_LAYER=tls the layer is TLS: make layer-test. With CHERT_PLACEMENT=inline
// adaptive handlers run inline.
//
// It knows chert from outside, but for internal/testhook. Tests alone import it.
package engines
