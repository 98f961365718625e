package tlsio

import (
	"bytes"
	"crypto/tls"
	"reflect"
	"unsafe"
)

// This file gives up the buffers that crypto/tls never shrinks: of a record of
// 16 KiB it keeps 18 KiB for good (golang/go#43563), of a ClientHello with
// post-quantum keys 3 KiB. There is no way to ask for that; so the buffers are
// replaced by empty ones where they are, if they are where they are expected.
// Their memory is the garbage collector's, so that nothing goes wrong if something
// still points into it.

// keepInput is what may stay of a buffer that was read into: room for a small
// request, so that it need not be made for each.
const keepInput = 2 << 10

// fields are where a tls.Conn has its buffers.
type fields struct {
	found                 bool
	rawInput, input, hand uintptr
}

var buffers = find(reflect.TypeFor[tls.Conn]())

// find looks for the fields by name and type. found is false if one is another
// than it was: then nothing is given up.
func find(t reflect.Type) (f fields) {
	offset := func(name string, is reflect.Type) uintptr {
		field, ok := t.FieldByName(name)
		f.found = f.found && ok && field.Type == is && len(field.Index) == 1
		return field.Offset
	}
	f.found = true
	f.rawInput = offset("rawInput", reflect.TypeFor[bytes.Buffer]())
	f.input = offset("input", reflect.TypeFor[bytes.Reader]())
	f.hand = offset("hand", reflect.TypeFor[bytes.Buffer]())
	return f
}

// giveUp drops the buffers of tc that are empty. No Read may run meanwhile.
func giveUp(tc *tls.Conn) {
	f := &buffers
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
