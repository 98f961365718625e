// Package acmetest tests the certificates of ACME against pebble, the test
// authority of Let's Encrypt, in the test's own process. It is a module of its own,
// so that chert's does not need pebble's.
package acmetest
