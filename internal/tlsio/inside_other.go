//go:build go1.28 || chert_copytls

package tlsio

import (
	"crypto/tls"
	"net"
)

// This file is inside.go for versions of Go that TestNothingPointsIntoLent has not looked
// at, and for tests of that with the tag chert_copytls: crypto/tls copies each record and
// keeps its buffers, and NetConn of a hijacked connection is a type of this package.

func lends() bool                          { return false }
func lend(*tls.Conn, []byte) bool          { return false }
func takeBack(*tls.Conn) (left int)        { return 0 }
func put(*tls.Conn, net.Conn, []byte) bool { return false }
func giveUp(*tls.Conn, int)                {}

// Idle does not know.
func Idle(*tls.Conn) (ready, ok bool) { return false, false }
