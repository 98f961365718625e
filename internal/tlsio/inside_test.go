//go:build !go1.28 && !chert_copytls

package tlsio

import (
	"bytes"
	"net"
	"reflect"
	"strings"
	"testing"
)

// The fields are where they are looked for. If this fails with a new Go, nothing
// breaks, but idle connections are larger, and NetConn of a hijacked one is not the
// socket.
func TestFields(t *testing.T) {
	t.Parallel()
	if !inside.found {
		t.Error("the fields of a tls.Conn are not found")
	}
	field := func(name string, t reflect.Type) reflect.StructField {
		return reflect.StructField{Name: name, PkgPath: "crypto/tls", Type: t}
	}
	conn, hand := field("conn", reflect.TypeFor[net.Conn]()), field("hand", reflect.TypeFor[bytes.Buffer]())
	raw, input := field("rawInput", reflect.TypeFor[bytes.Buffer]()), field("input", reflect.TypeFor[bytes.Reader]())
	for _, tt := range []struct {
		fields []reflect.StructField
		want   bool
	}{
		{[]reflect.StructField{hand, input, raw, conn}, true},
		{[]reflect.StructField{hand, input, raw}, false},
		{[]reflect.StructField{hand, input, field("rawInput", reflect.TypeFor[[]byte]()), conn}, false},
		{[]reflect.StructField{hand, input, raw, field("conn", reflect.TypeFor[*net.TCPConn]())}, false},
	} {
		if typ := reflect.StructOf(tt.fields); find(typ).found != tt.want {
			t.Errorf("%v: taken for a tls.Conn is %v", typ, !tt.want)
		}
	}
}

// Nothing stays of records that are lent.
func TestIdleLent(t *testing.T) {
	t.Parallel()
	l, client, _ := records(t)
	w := (*wire)(l.(*layer))
	if !w.lends {
		t.Skip("nothing is lent with this version of Go")
	}
	for _, p := range []string{"", "small", strings.Repeat("x", maxPlain)} {
		if got, err := feed(t, l, client.seal(kindData, p), 1<<20); got != p || err != nil {
			t.Fatal(len(got), err)
		}
		raw, _, hand := buffers(w.tc)
		if n, m := raw.Cap(), hand.Cap(); n > 0 || m > 0 {
			t.Errorf("%d and %d bytes are kept", n, m)
		}
	}
}
