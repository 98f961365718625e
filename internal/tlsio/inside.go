package tlsio

import (
	"bytes"
	"crypto/tls"
	"net"
	"reflect"
	"unsafe"
)

// This file is what is done to a *tls.Conn from outside that crypto/tls has no
// function for. Fields are found by name and type; if one is another than it was,
// nothing is done.
//
// It gives up buffers that crypto/tls never shrinks: of a record of 16 KiB it keeps
// 18 KiB for good (golang/go#43563), of a ClientHello with post-quantum keys 3 KiB.
// They are replaced by empty ones. Their memory is the garbage collector's, so
// nothing goes wrong if something still points into it.
//
// And it makes NetConn of a hijacked connection the connection itself: users ask
// for a *net.TCPConn there.

// keepInput is what may stay of a buffer that was read into: room for a small
// request, so that it need not be made for each.
const keepInput = 2 << 10

// fields are where a tls.Conn has what this needs.
type fields struct {
	found                       bool
	conn, rawInput, input, hand uintptr
}

var inside = find(reflect.TypeFor[tls.Conn]())

func find(t reflect.Type) (f fields) {
	offset := func(name string, is reflect.Type) uintptr {
		field, ok := t.FieldByName(name)
		f.found = f.found && ok && field.Type == is && len(field.Index) == 1
		return field.Offset
	}
	f.found = true
	f.conn = offset("conn", reflect.TypeFor[net.Conn]())
	f.rawInput = offset("rawInput", reflect.TypeFor[bytes.Buffer]())
	f.input = offset("input", reflect.TypeFor[bytes.Reader]())
	f.hand = offset("hand", reflect.TypeFor[bytes.Buffer]())
	return f
}

// put makes nc what is below tc, with raw read from it already, and reports whether
// it has. Nobody may use tc meanwhile.
func put(tc *tls.Conn, nc net.Conn, raw []byte) bool {
	f := &inside
	if !f.found {
		return false
	}
	p := unsafe.Pointer(tc)
	(*bytes.Buffer)(unsafe.Add(p, f.rawInput)).Write(raw)
	*(*net.Conn)(unsafe.Add(p, f.conn)) = nc
	return true
}

// giveUp drops the buffers of tc that are empty. No Read may run meanwhile.
func giveUp(tc *tls.Conn) {
	f := &inside
	if !f.found {
		return
	}
	p := unsafe.Pointer(tc)
	raw := (*bytes.Buffer)(unsafe.Add(p, f.rawInput))
	input := (*bytes.Reader)(unsafe.Add(p, f.input))
	hand := (*bytes.Buffer)(unsafe.Add(p, f.hand))
	if raw.Len() == 0 && input.Len() == 0 && raw.Cap() > keepInput {
		*raw = bytes.Buffer{}
		*input = bytes.Reader{} // it is a part of raw
	}
	if hand.Len() == 0 && hand.Cap() > 0 {
		*hand = bytes.Buffer{}
	}
}
