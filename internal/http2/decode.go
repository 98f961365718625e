package http2

import (
	"errors"

	"github.com/chert-http/chert/internal/pack"
)

// DefaultTableSize is SETTINGS_HEADER_TABLE_SIZE of a peer that has said nothing.
const DefaultTableSize = 4096

// Decoder decodes the header blocks of one connection (RFC 7541). The zero value is
// ready, with a table of no bytes; see Init.
type Decoder struct {
	table table
	limit uint32 // what the peer may make the table
	due   bool   // the next block must begin with an update of the table's size
}

// Init gives the decoder the table that both sides begin with, which the peer may
// make as large as limit once it has acknowledged that.
func (d *Decoder) Init() { d.limit, d.table.max = DefaultTableSize, DefaultTableSize }

// SetLimit says that the peer has acknowledged a SETTINGS_HEADER_TABLE_SIZE of n.
func (d *Decoder) SetLimit(n uint32) {
	d.limit = n
	if d.table.max > n {
		d.table.resize(n)
		d.due = true
	}
}

var (
	errIndex     = errors.New("http2: a header block refers to what is not in the table")
	errUpdate    = errors.New("http2: a table size update that is too large or not at the block's beginning")
	errNoUpdate  = errors.New("http2: a header block without the table size update that is due")
	errListLarge = &ConnError{EnhanceYourCalm, "a header list is far larger than was announced"}
	errListBad   = &ConnError{EnhanceYourCalm, "a header list is malformed and larger than was announced"}
)

// farTooLarge is how many times the bytes that are allowed a list may have for all of
// its block to be decoded, so that the request is answered: two bytes on the wire can
// stand for as many as the table has.
const farTooLarge = 4

// Decode decodes a whole header block into f. An error is of the connection
// (COMPRESSION_ERROR unless it is a ConnError): what the table is from there on is not
// known.
func (d *Decoder) Decode(b []byte, f *pack.Fields, lim pack.Limits) error {
	f.Empty()
	first := true
	for len(b) > 0 {
		c := b[0]
		var err error
		switch {
		case d.due && c&0xe0 != 0x20: // RFC 9113 section 4.3.1: the peer may not have made its table smaller
			return errNoUpdate
		case c&0x80 != 0:
			b, err = d.indexed(b, f, lim)
		case c&0xc0 == 0x40:
			b, err = d.literal(b, 6, true, f, lim)
		case c&0xe0 == 0x20:
			var n uint64
			if n, b, err = pack.Integer(b, 5); err == nil && (n > uint64(d.limit) || !first) {
				err = errUpdate
			}
			if err == nil {
				d.table.resize(uint32(n))
				d.due = false
			}
			if err != nil {
				return err
			}
			continue
		default:
			b, err = d.literal(b, 4, false, f, lim)
		}
		switch {
		case err != nil || !f.TooLarge:
		case f.Size()/farTooLarge > lim.Bytes:
			err = errListLarge
		case f.Malformed:
			// No request to be answered, and work to be done: RFC 9113 section 10.5 lets that
			// be the connection's error. What is not decoded ends the connection in any case
			// (section 4.3).
			err = errListBad
		}
		if err != nil {
			return err
		}
		first = false
	}
	return nil
}

// indexed decodes a field that is in a table (RFC 7541 section 6.1).
func (d *Decoder) indexed(b []byte, f *pack.Fields, lim pack.Limits) ([]byte, error) {
	i, b, err := pack.Integer(b, 7)
	if err != nil {
		return nil, err
	}
	if i > 0 && i < uint64(len(static)) {
		f.Static(static[i].id, static[i].value, lim)
		return b, nil
	}
	e := d.table.at(i)
	if e == nil {
		return nil, errIndex
	}
	if f.Malformed = f.Malformed || e.bad; !f.Fits(e.size(), lim) {
		return b, nil
	}
	name, value := d.table.bytes(e)
	field := pack.Field{ID: e.id}
	if e.id == 0 {
		field.Name = f.Put(name)
	}
	if field.Value = f.Put(value); e.spaced {
		field.Value = f.Trim(field.Value, e.id)
	}
	f.List = append(f.List, field)
	return b, nil
}

// literal decodes a field that is not in a table, though its name may be (RFC 7541
// section 6.2), with an index of bits bits.
func (d *Decoder) literal(b []byte, bits uint, keep bool, f *pack.Fields, lim pack.Limits) ([]byte, error) {
	i, b, err := pack.Integer(b, bits)
	if err != nil {
		return nil, err
	}
	start := len(f.Bytes)
	var field pack.Field
	size, bad := 0, false
	switch {
	case i == 0:
		if field.Name, b, err = f.Text(b, 7); err != nil {
			return nil, err
		}
		size, bad = f.Name(&field)
	case i < uint64(len(static)):
		field.ID = static[i].id
		size = len(field.ID.Name())
	default:
		e := d.table.at(i)
		if e == nil {
			return nil, errIndex
		}
		name, _ := d.table.bytes(e)
		size = int(e.nameSize)
		if field.ID = e.id; e.id == 0 {
			field.Name = f.Put(name)
			bad = !pack.ValidWireName(name)
		}
	}
	if field.Value, b, err = f.Text(b, 7); err != nil {
		return nil, err
	}
	whole := field.Value
	value := f.Get(whole)
	bad = f.Value(&field) || bad
	if keep { // as it came: the client counts its bytes
		d.table.add(f.Get(field.Name), value, entry{nameSize: uint32(size), id: field.ID, bad: bad,
			spaced: field.Value != whole})
	}
	f.Malformed = f.Malformed || bad
	f.Add(field, size+len(value), start, lim)
	return b, nil
}
