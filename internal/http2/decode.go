package http2

import "errors"

// Span is a part of Fields.Bytes.
type Span struct{ Start, End uint32 }

// Field is a field of a header block.
type Field struct {
	// Name is empty if ID is not 0.
	Name, Value Span
	ID          NameID
	// Index is that of the static table if the whole field is there, else 0.
	Index uint8
}

// Fields is a decoded header block. It is reused: Decode empties it first.
type Fields struct {
	Bytes []byte
	List  []Field
	// Malformed: a name or a value is not one (RFC 9113 section 8.2.1; space around the
	// value of an ordinary field is taken off instead), or connection-specific fields are
	// among them; TooLarge: there is more than the limits allow, and List has not all of it.
	Malformed, TooLarge bool

	size int // as SETTINGS_MAX_HEADER_LIST_SIZE counts
}

// Reset empties f, and drops its memory if that is more than keep bytes.
func (f *Fields) Reset(keep int) {
	if f.Bytes = f.Bytes[:0]; cap(f.Bytes) > keep {
		f.Bytes = nil
	}
	if f.List = f.List[:0]; cap(f.List)*20 > keep {
		f.List = nil
	}
	f.Malformed, f.TooLarge, f.size = false, false, 0
}

// Size is what the block counts as against ListLimits.Bytes.
func (f *Fields) Size() int { return f.size }

// Get is the bytes of s.
func (f *Fields) Get(s Span) []byte { return f.Bytes[s.Start:s.End:s.End] }

// Pseudo reports whether the block begins with a pseudo-field, as that of a request
// does.
func (f *Fields) Pseudo() bool {
	return len(f.List) > 0 && f.List[0].ID != 0 && f.List[0].ID <= IDStatus
}

// ListLimits bound a decoded header block: the number of its fields, and the sum of
// their names and values with 32 bytes more for each field (RFC 9113 section 6.5.2).
type ListLimits struct{ Fields, Bytes int }

// fieldCost is what a field counts besides its name and value.
const fieldCost = 32

// DefaultTableSize is SETTINGS_HEADER_TABLE_SIZE of a peer that has said nothing.
const DefaultTableSize = 4096

// Decoder decodes the header blocks of one connection (RFC 7541). The zero value is
// ready, with a table of no bytes; see Init.
type Decoder struct {
	table table
	limit uint32 // what the peer may make the table
}

// Init gives the decoder the table that both sides begin with, which the peer may
// make as large as limit once it has acknowledged that.
func (d *Decoder) Init() { d.limit, d.table.max = DefaultTableSize, DefaultTableSize }

// SetLimit says that the peer has acknowledged a SETTINGS_HEADER_TABLE_SIZE of n.
func (d *Decoder) SetLimit(n uint32) {
	d.limit = n
	if d.table.max > n {
		d.table.resize(n)
	}
}

var (
	errBlockShort = errors.New("http2: a header block ends within a field")
	errInteger    = errors.New("http2: an integer of a header block is too large")
	errIndex      = errors.New("http2: a header block refers to what is not in the table")
	errUpdate     = errors.New("http2: a table size update that is too large or not at the block's beginning")
	errListLarge  = &ConnError{EnhanceYourCalm, "a header list is far larger than was announced"}
	errListBad    = &ConnError{EnhanceYourCalm, "a header list is malformed and larger than was announced"}
)

// farTooLarge is how many times the bytes that are allowed a list may have for all of
// its block to be decoded, so that the request is answered: two bytes on the wire can
// stand for as many as the table has.
const farTooLarge = 4

// Decode decodes a whole header block into f. An error is of the connection
// (COMPRESSION_ERROR unless it is a ConnError): what the table is from there on is not
// known.
func (d *Decoder) Decode(b []byte, f *Fields, lim ListLimits) error {
	f.Bytes, f.List, f.size, f.Malformed, f.TooLarge = f.Bytes[:0], f.List[:0], 0, false, false
	first := true
	for len(b) > 0 {
		c := b[0]
		var err error
		switch {
		case c&0x80 != 0:
			b, err = d.indexed(b, f, lim)
		case c&0xc0 == 0x40:
			b, err = d.literal(b, 6, true, f, lim)
		case c&0xe0 == 0x20:
			var n uint32
			if n, b, err = integer(b, 5); err == nil && (n > d.limit || !first) {
				err = errUpdate
			}
			if err == nil {
				d.table.resize(n)
			}
			if err != nil {
				return err
			}
			continue
		default:
			b, err = d.literal(b, 4, false, f, lim)
		}
		switch {
		case err != nil:
		case f.size/farTooLarge > lim.Bytes:
			err = errListLarge
		case f.Malformed && f.TooLarge:
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

// integer decodes an integer with a prefix of n bits (RFC 7541 section 5.1).
func integer(b []byte, n uint) (v uint32, rest []byte, err error) {
	mask := uint32(1)<<n - 1
	v = uint32(b[0]) & mask
	if b = b[1:]; v < mask {
		return v, b, nil
	}
	// Nothing here is larger than a block, so 28 bits will do.
	for shift := uint(0); shift < 28; shift += 7 {
		if len(b) == 0 {
			return 0, nil, errBlockShort
		}
		c := b[0]
		b = b[1:]
		v += uint32(c&0x7f) << shift
		if c&0x80 == 0 {
			return v, b, nil
		}
	}
	return 0, nil, errInteger
}

// text decodes a string literal (RFC 7541 section 5.2) to the end of f.Bytes.
func (f *Fields) text(b []byte) (s Span, rest []byte, err error) {
	if len(b) == 0 {
		return s, nil, errBlockShort
	}
	huffman := b[0]&0x80 != 0
	n, b, err := integer(b, 7)
	if err != nil {
		return s, nil, err
	}
	if uint64(n) > uint64(len(b)) {
		return s, nil, errBlockShort
	}
	s.Start = uint32(len(f.Bytes))
	if huffman {
		f.Bytes, err = appendHuffmanDecoded(f.Bytes, b[:n])
	} else {
		f.Bytes = append(f.Bytes, b[:n]...)
	}
	s.End = uint32(len(f.Bytes))
	return s, b[n:], err
}

func (f *Fields) put(p []byte) Span {
	start := uint32(len(f.Bytes))
	f.Bytes = append(f.Bytes, p...)
	return Span{start, uint32(len(f.Bytes))}
}

func (f *Fields) putString(p string) Span {
	start := uint32(len(f.Bytes))
	f.Bytes = append(f.Bytes, p...)
	return Span{start, uint32(len(f.Bytes))}
}

// indexed decodes a field that is in a table (RFC 7541 section 6.1).
func (d *Decoder) indexed(b []byte, f *Fields, lim ListLimits) ([]byte, error) {
	i, b, err := integer(b, 7)
	if err != nil {
		return nil, err
	}
	if i > 0 && i < uint32(len(static)) {
		e := &static[i]
		f.Malformed = f.Malformed || staticID[i] == IDTransferEncoding // as in literal
		if f.fits(len(e.name)+len(e.value), lim) {
			f.List = append(f.List, Field{ID: staticID[i], Index: uint8(i), Value: f.putString(e.value)})
		}
		return b, nil
	}
	e := d.table.at(i)
	if e == nil {
		return nil, errIndex
	}
	if f.Malformed = f.Malformed || e.bad; !f.fits(e.size(), lim) {
		return b, nil
	}
	name, value := d.table.bytes(e)
	field := Field{ID: e.id}
	if e.id == 0 {
		field.Name = f.put(name)
	}
	if field.Value = f.put(value); e.spaced {
		field.Value = f.trim(field.Value, e.id)
	}
	f.List = append(f.List, field)
	return b, nil
}

// trim takes the space off that is around the value of an ordinary field. RFC 9113 section
// 8.2.1 calls a request with it malformed, but clients in use send such (ADR 46). The
// fields that say where a request goes and where it ends keep theirs, and are refused.
func (f *Fields) trim(v Span, id NameID) Span {
	if v.Start == v.End || !isSpace(f.Bytes[v.Start]) && !isSpace(f.Bytes[v.End-1]) || strict(id) {
		return v
	}
	for v.Start < v.End && isSpace(f.Bytes[v.Start]) {
		v.Start++
	}
	for v.Start < v.End && isSpace(f.Bytes[v.End-1]) {
		v.End--
	}
	return v
}

// strict reports whether the value of a field must not have space around it.
func strict(id NameID) bool {
	return id != 0 && id <= IDStatus || id == IDHost || id == IDContentLength
}

// fits counts a field of n bytes and reports whether it is within the limits, as
// all before it were.
func (f *Fields) fits(n int, lim ListLimits) bool {
	f.size += n + fieldCost
	f.TooLarge = f.TooLarge || f.size > lim.Bytes || len(f.List) >= lim.Fields
	return !f.TooLarge
}

// literal decodes a field that is not in a table, though its name may be (RFC 7541
// section 6.2), with an index of bits bits.
func (d *Decoder) literal(b []byte, bits uint, keep bool, f *Fields, lim ListLimits) ([]byte, error) {
	i, b, err := integer(b, bits)
	if err != nil {
		return nil, err
	}
	start := len(f.Bytes)
	var field Field
	size, bad := 0, false
	switch {
	case i == 0:
		if field.Name, b, err = f.text(b); err != nil {
			return nil, err
		}
		name := f.Get(field.Name)
		size = len(name)
		if field.ID = lookupName(name); field.ID == 0 {
			bad = !validName(name)
		} else {
			field.Name = Span{}
		}
	case i < uint32(len(static)):
		field.ID = staticID[i]
		size = len(static[i].name)
	default:
		e := d.table.at(i)
		if e == nil {
			return nil, errIndex
		}
		name, _ := d.table.bytes(e)
		size = int(e.nameSize)
		if field.ID = e.id; e.id == 0 {
			field.Name = f.put(name)
			bad = !validName(name)
		}
	}
	if field.Value, b, err = f.text(b); err != nil {
		return nil, err
	}
	value := f.Get(field.Value)
	bad = bad || !validValue(value, field.ID) || field.ID == IDTransferEncoding
	whole := field.Value
	field.Value = f.trim(whole, field.ID)
	if keep { // as it came: the client counts its bytes
		d.table.add(f.Get(field.Name), value, entry{nameSize: uint32(size), id: field.ID, bad: bad,
			spaced: field.Value != whole})
	}
	f.Malformed = f.Malformed || bad
	if f.fits(size+len(value), lim) {
		f.List = append(f.List, field)
	} else {
		f.Bytes = f.Bytes[:start]
	}
	return b, nil
}

const (
	nameByte  = 1 << iota // of a field's name: a token without upper case (RFC 9113 section 8.2.1)
	valueByte             // of its value (RFC 9110 section 5.5)
)

var classes = func() (t [256]uint8) {
	const name = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
	for i := range len(name) {
		t[name[i]] |= nameByte
	}
	for c := range t {
		if c >= ' ' && c != 0x7f || c == '\t' {
			t[c] |= valueByte
		}
	}
	return t
}()

// validName reports whether p may be a field's name. Pseudo-fields that are known
// have a NameID, so others are not asked for here, and refused.
func validName(p []byte) bool {
	for _, c := range p {
		if classes[c]&nameByte == 0 {
			return false
		}
	}
	if len(p) == 0 {
		return false
	}
	switch string(p) { // RFC 9113 section 8.2.2
	case "connection", "proxy-connection", "keep-alive", "upgrade":
		return false
	}
	return true
}

// validValue reports whether p may be the value of the field id: no control bytes, and no
// space around it (RFC 9113 section 8.2.1) where trim leaves that.
func validValue(p []byte, id NameID) bool {
	for _, c := range p {
		if classes[c]&valueByte == 0 {
			return false
		}
	}
	return len(p) == 0 || !isSpace(p[0]) && !isSpace(p[len(p)-1]) || !strict(id)
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' }
