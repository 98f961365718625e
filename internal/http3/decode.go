package http3

import "github.com/chert-http/chert/internal/pack"

var (
	errShort   = &ConnError{QPACKDecompressionFailed, pack.ErrShort.Error()}
	errInteger = &ConnError{QPACKDecompressionFailed, pack.ErrInteger.Error()}
	errHuffman = &ConnError{QPACKDecompressionFailed, pack.ErrHuffman.Error()}
	errDynamic = &ConnError{QPACKDecompressionFailed, "a field section refers to the dynamic table, which has no room"}
	errBase    = &ConnError{QPACKDecompressionFailed, "the base of a field section is negative"}
	errIndex   = &ConnError{QPACKDecompressionFailed, "a field section refers to what is not in the static table"}
)

// Decode decodes a whole field section into f (RFC 9204 section 4.5). There is no dynamic
// table, as its announced capacity is 0, so a section depends on none before it and may be
// decoded by any goroutine. Decoding stops where f is found to be Malformed or TooLarge: as
// no state is lost with the rest, a few bytes that stand for many cost no more than the
// limits allow. An error is a ConnError, QPACK_DECOMPRESSION_FAILED (section 2.2.3 and 6).
func Decode(b []byte, f *pack.Fields, lim pack.Limits) error {
	f.Empty()
	b, err := prefix(b)
	for err == nil && len(b) > 0 && !f.Malformed && !f.TooLarge {
		switch c := b[0]; {
		case c&0x80 != 0:
			b, err = indexed(b, f, lim)
		case c&0x40 != 0:
			b, err = nameReference(b, f, lim)
		case c&0x20 != 0:
			b, err = literal(b, f, lim)
		default:
			// Relative to the base, and after it: in the dynamic table.
			err = errDynamic
		}
	}
	switch err {
	case pack.ErrShort:
		return errShort
	case pack.ErrInteger:
		return errInteger
	case pack.ErrHuffman:
		return errHuffman
	}
	return err
}

// prefix reads the beginning of a field section (RFC 9204 section 4.5.1).
func prefix(b []byte) ([]byte, error) {
	if len(b) < 2 {
		return nil, pack.ErrShort
	}
	// Encoded as 0 only if it is 0; the smallest other one means entries that there cannot
	// be.
	if b[0] != 0 {
		return nil, errDynamic
	}
	// Section 4.5.1.2: with the sign and a required insert count of 0, the base is negative.
	// Without it any base will do, as nothing refers to it.
	if b[1]&0x80 != 0 {
		return nil, errBase
	}
	_, b, err := pack.Integer(b[1:], 7)
	return b, err
}

// indexed decodes a field that is in a table (RFC 9204 section 4.5.2).
func indexed(b []byte, f *pack.Fields, lim pack.Limits) ([]byte, error) {
	if b[0]&0x40 == 0 {
		return nil, errDynamic
	}
	i, b, err := pack.Integer(b, 6)
	if err != nil {
		return nil, err
	}
	if i >= uint64(len(static)) {
		return nil, errIndex
	}
	f.Static(static[i].id, static[i].value, lim)
	return b, nil
}

// nameReference decodes a field whose name is in a table (RFC 9204 section 4.5.4).
func nameReference(b []byte, f *pack.Fields, lim pack.Limits) ([]byte, error) {
	if b[0]&0x10 == 0 {
		return nil, errDynamic
	}
	i, b, err := pack.Integer(b, 4)
	if err != nil {
		return nil, err
	}
	if i >= uint64(len(static)) {
		return nil, errIndex
	}
	field := pack.Field{ID: static[i].id}
	return value(b, f, field, len(field.ID.Name()), len(f.Bytes), lim)
}

// literal decodes a field with its name (RFC 9204 section 4.5.6).
func literal(b []byte, f *pack.Fields, lim pack.Limits) (_ []byte, err error) {
	start := len(f.Bytes)
	var field pack.Field
	if field.Name, b, err = f.Text(b, 3); err != nil {
		return nil, err
	}
	size, bad := f.Name(&field)
	f.Malformed = f.Malformed || bad
	return value(b, f, field, size, start, lim)
}

// value decodes the value of a field, whose name has size bytes and is in f.Bytes from
// start on, and adds the field.
func value(b []byte, f *pack.Fields, field pack.Field, size, start int, lim pack.Limits) (_ []byte, err error) {
	if field.Value, b, err = f.Text(b, 7); err != nil {
		return nil, err
	}
	size += int(field.Value.End - field.Value.Start)
	bad := f.Value(&field)
	f.Malformed = f.Malformed || bad
	f.Add(field, size, start, lim)
	return b, nil
}
