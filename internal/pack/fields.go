package pack

// Span is a part of Fields.Bytes.
type Span struct{ Start, End uint32 }

// Len returns how many bytes it is.
func (s Span) Len() int { return int(s.End - s.Start) }

// Field is a field of a section.
type Field struct {
	// Name is empty if ID is not 0.
	Name, Value Span
	ID          NameID
}

// Fields is a decoded field section, or header block. It is reused: decoders empty it
// first.
type Fields struct {
	Bytes []byte
	List  []Field
	// Malformed: a name or a value is not one (RFC 9113 section 8.2.1, RFC 9114 section 4.2;
	// space around the value of an ordinary field is taken off instead), or
	// connection-specific fields are among them; TooLarge: there is more than the limits
	// allow, and List has not all of it.
	Malformed, TooLarge bool

	size int // as Limits.Bytes counts
}

// Limits bound a decoded section: the number of its fields, and the sum of their names and
// values with 32 bytes more for each field (RFC 9113 section 6.5.2, RFC 9114 section
// 4.2.2).
type Limits struct{ Fields, Bytes int }

// FieldCost is what a field counts besides its name and value.
const FieldCost = 32

// fieldSize is the size of a Field in memory.
const fieldSize = 20

// Reset empties f, and drops its memory if that is more than keep bytes.
func (f *Fields) Reset(keep int) {
	if f.Empty(); cap(f.Bytes) > keep {
		f.Bytes = nil
	}
	if cap(f.List)*fieldSize > keep {
		f.List = nil
	}
}

// Empty empties f, and keeps its memory.
func (f *Fields) Empty() {
	f.Bytes, f.List, f.size, f.Malformed, f.TooLarge = f.Bytes[:0], f.List[:0], 0, false, false
}

// Size is what the section counts as against Limits.Bytes.
func (f *Fields) Size() int { return f.size }

// Get is the bytes of s.
func (f *Fields) Get(s Span) []byte { return f.Bytes[s.Start:s.End:s.End] }

// Pseudo reports whether the section begins with a pseudo-field, as that of a request
// does.
func (f *Fields) Pseudo() bool {
	return len(f.List) > 0 && f.List[0].ID != 0 && f.List[0].ID <= IDStatus
}

// Put appends p to f.Bytes.
func (f *Fields) Put(p []byte) Span {
	start := uint32(len(f.Bytes))
	f.Bytes = append(f.Bytes, p...)
	return Span{start, uint32(len(f.Bytes))}
}

// Static adds a field that the static table has.
func (f *Fields) Static(id NameID, value string, lim Limits) {
	f.Malformed = f.Malformed || id == IDTransferEncoding // as in Value
	if f.Fits(len(wire[id])+len(value), lim) {
		start := uint32(len(f.Bytes))
		f.Bytes = append(f.Bytes, value...)
		f.List = append(f.List, Field{ID: id, Value: Span{start, uint32(len(f.Bytes))}})
	}
}

// Name judges the name of a field, which is at the end of f.Bytes. It stays there only in
// a field without a NameID.
func (f *Fields) Name(field *Field) (size int, bad bool) {
	name := f.Get(field.Name)
	size = len(name)
	if field.ID = LookupWire(name); field.ID == 0 {
		return size, !ValidWireName(name)
	}
	field.Name = Span{}
	return size, false
}

// Value judges the value of a field whose ID is known, and trims it. bad: no message may
// have the field.
func (f *Fields) Value(field *Field) (bad bool) {
	bad = !validValue(f.Get(field.Value), field.ID) || field.ID == IDTransferEncoding
	field.Value = f.Trim(field.Value, field.ID)
	return bad
}

// Add adds a field of size bytes if that is within the limits; if not, it cuts f.Bytes
// down to start.
func (f *Fields) Add(field Field, size, start int, lim Limits) {
	if f.Fits(size, lim) {
		f.List = append(f.List, field)
	} else {
		f.Bytes = f.Bytes[:start]
	}
}

// Fits counts a field of n bytes and reports whether it is within the limits, as all
// before it were.
func (f *Fields) Fits(n int, lim Limits) bool {
	f.size += n + FieldCost
	f.TooLarge = f.TooLarge || f.size > lim.Bytes || len(f.List) >= lim.Fields
	return !f.TooLarge
}

// Trim takes the space off that is around the value of an ordinary field. RFC 9113 section
// 8.2.1 calls a request with it malformed, but clients in use send such (ADR 46). The
// fields that say where a request goes and where it ends keep theirs, and are refused.
func (f *Fields) Trim(v Span, id NameID) Span {
	if v.Start == v.End || !isSpace(f.Bytes[v.Start]) && !isSpace(f.Bytes[v.End-1]) || Strict(id) {
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
