//go:build !go1.28 && !chert_copytls

package tlsio

import (
	"bytes"
	"crypto/tls"
	"net"
	"reflect"
	"unsafe"
)

// This file changes fields of a *tls.Conn for which crypto/tls has no function. They
// are found by name and type when the program starts; if one is missing or of another
// type, nothing is changed.
//
// lend makes the record that is to be opened the input buffer of a tls.Conn. The
// record is then decrypted in place. Otherwise crypto/tls copies it to a buffer that
// it allocates and never shrinks: 18 KiB after a record of 16 KiB (golang/go#43563),
// 2 KiB after a ClientHello with post-quantum keys. The memory is used for all
// connections of a loop, so nothing in the tls.Conn may point into it afterwards: a
// test searches the tls.Conn, and the build tag names the versions of Go that it was run
// with.
//
// giveUp drops the buffers that are left from a handshake, or used where nothing is
// lent. They are garbage-collected, so it is safe if something still points into
// them.
//
// put makes NetConn of a hijacked connection return the socket's net.Conn, where
// users expect a *net.TCPConn.
//
// For versions of Go whose crypto/tls has not been inspected, inside_other.go has the same
// functions and changes nothing.

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
// it has. No other goroutine may use tc meanwhile.
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

// lends reports whether lend works.
func lends() bool { return inside.found }

// lend makes record, which tc may change, all that is left to be read by tc, and
// reports whether it has. No Read may run meanwhile.
func lend(tc *tls.Conn, record []byte) bool {
	raw, input, _ := buffers(tc)
	if raw.Len() > 0 || input.Len() > 0 {
		return false
	}
	*raw = *bytes.NewBuffer(record[:len(record):len(record)])
	return true
}

// takeBack ends what lend began, and returns how many bytes tc has not read.
func takeBack(tc *tls.Conn) (left int) {
	raw, input, _ := buffers(tc)
	left = raw.Len() + input.Len()
	*raw, *input = bytes.Buffer{}, bytes.Reader{}
	return left
}

// buffers are those of tc: what has come, a part of that which is decrypted, and
// messages that are not complete.
func buffers(tc *tls.Conn) (rawInput *bytes.Buffer, input *bytes.Reader, hand *bytes.Buffer) {
	p, f := unsafe.Pointer(tc), &inside
	return (*bytes.Buffer)(unsafe.Add(p, f.rawInput)), (*bytes.Reader)(unsafe.Add(p, f.input)),
		(*bytes.Buffer)(unsafe.Add(p, f.hand))
}

// giveUp drops the buffers of tc that are empty, but for an input buffer of up to
// keep bytes. No Read may run meanwhile.
func giveUp(tc *tls.Conn, keep int) {
	if !inside.found {
		return
	}
	raw, input, hand := buffers(tc)
	if raw.Len() == 0 && input.Len() == 0 && raw.Cap() > keep {
		*raw = bytes.Buffer{}
		*input = bytes.Reader{} // it is a part of raw
	}
	if hand.Len() == 0 && hand.Cap() > 0 {
		*hand = bytes.Buffer{}
	}
}

// Idle releases the buffers of tc that are empty, and reports whether Read has
// something to return without reading from the connection below: what has been
// decrypted, or a whole record. ok is false if that cannot be determined. No Read may run
// meanwhile.
func Idle(tc *tls.Conn) (ready, ok bool) {
	if !inside.found {
		return false, false
	}
	giveUp(tc, 0)
	raw, input, _ := buffers(tc)
	return input.Len() > 0 || whole(raw.Bytes()) > 0, true
}
