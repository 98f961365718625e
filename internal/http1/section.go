package http1

// section is a field section while it is parsed: of a head or a trailer section.
type section struct {
	fields      []Field
	seen, twice uint8 // the fields up to FieldTrailer that are present, and those present more than once
}

// parse reads field lines at b[i:] and the empty line after them, and appends to
// s.fields. It returns the offset after that line; 0 means need more, or refused if there
// is an error.
func (s *section) parse(b []byte, i, maxFields int, p *Progress) (n int, e *Error) {
	for i < len(b) {
		if b[i] == '\r' {
			return emptyLine(b, i)
		}
		k := len(s.fields)
		if k == maxFields {
			return 0, refuse(b, i, errTooManyFields)
		}
		s.fields = append(s.fields, Field{})
		f := &s.fields[k]
		if i, e = f.parse(b, i); i == 0 {
			return 0, e
		}
		p.fields++
		bit := bit(f.ID)
		s.twice |= s.seen & bit
		s.seen |= bit
	}
	return 0, nil
}

// parse reads one field line at b[i:] into f and returns the offset after it; 0
// means need more, or refused if there is an error.
func (f *Field) parse(b []byte, i int) (next int, e *Error) {
	start := i
	if id, n := knownField(b[i:]); n > 0 {
		i += n
		f.ID = id
	} else {
		i = tokenEnd(b, i)
		if i == len(b) {
			return 0, nil
		}
		if b[i] != ':' || i == start {
			return 0, refuse(b, i, nameError(b, start, i))
		}
		f.ID = LookupField(b[start:i])
	}
	f.Name = Span{uint32(start), uint32(i)}

	for i++; i < len(b) && isOWS(b[i]); i++ {
	}
	start = i
	if i, e = textEnd(b, i); i == 0 {
		return 0, e
	}
	next = i + 2
	for i > start && isOWS(b[i-1]) {
		i--
	}
	f.Value = Span{uint32(start), uint32(i)}
	return next, nil
}

// textEnd returns where the CRLF after the value at b[i:] is; 0 means need more,
// or refused if there is an error.
func textEnd(b []byte, i int) (end int, e *Error) {
	i = valueEnd(b, i)
	if i == len(b) {
		return 0, nil
	}
	if b[i] != '\r' || i+1 < len(b) && b[i+1] != '\n' {
		return 0, refuse(b, i, valueError(b[i]))
	}
	if i+1 == len(b) {
		return 0, nil
	}
	return i, nil
}

// nameError returns the error of a field line whose name begins at start and
// has neither a tchar nor a proper colon at i.
func nameError(b []byte, start, i int) *Error {
	switch {
	case i == start && isOWS(b[i]):
		// RFC 9112 section 5.2: obs-fold must be refused or replaced by SP.
		// The same byte after the request line: section 2.2, refuse or skip.
		return errFold
	case isOWS(b[i]):
		// RFC 9112 section 5.1: whitespace before the colon must be refused.
		return errSpaceColon
	case i == start && b[i] == '\n':
		// An empty line to recipients that accept a single LF as a line end.
		return errBareLF
	}
	return errFieldName
}

// valueError returns the error of a field line that has c in its value.
func valueError(c byte) *Error {
	switch c {
	case '\r':
		// RFC 9112 section 2.2: a bare CR makes the element invalid.
		return errBareCR
	case '\n':
		// RFC 9112 section 2.2 lets a recipient accept a single LF as a line
		// end; those that do and those that do not disagree on framing.
		return errBareLF
	}
	// RFC 9110 section 5.5: CR, LF and NUL must be refused or replaced; other
	// controls are invalid as well.
	return errFieldValue
}

// emptyLine reads the CRLF that ends a section; b[i] is the CR.
func emptyLine(b []byte, i int) (next int, e *Error) {
	if i+1 == len(b) {
		return 0, nil
	}
	if b[i+1] != '\n' {
		return 0, refuse(b, i, errBareCR)
	}
	return i + 2, nil
}
