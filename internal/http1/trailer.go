package http1

// ParseTrailer reads the trailer section that follows the last chunk, at least
// an empty line, from the start of b. Results are those of Request.Parse. out
// uses the array of fields, whose contents are overwritten; on need more and on
// error keep the slice that was passed.
func ParseTrailer(b []byte, fields []Field, p *Progress, lim *Limits) (n int, out []Field, err error) {
	if p == nil {
		p = new(Progress)
	}
	b, maxFields, full := lim.cut(b)
	if !full && p.wait(b, maxFields, noStartLine) {
		return 0, fields[:0], nil
	}
	*p = Progress{scanned: uint32(len(b))}
	s := section{fields: fields[:0]}
	n, e := s.parse(b, 0, maxFields, p)
	if n > 0 {
		e = checkTrailer(s.fields)
	} else if e == nil && full {
		e = errHeadTooLong
	}
	n, err = p.answer(n, e)
	return n, s.fields, err
}

// barredFromTrailer reports whether a field decides framing, routing or the end
// of the connection before the body is read. RFC 9110 section 6.5.1 forbids
// sending these as trailers. Section 6.5.2 would let a recipient drop them;
// they are refused, because their only use here is to mislead the next
// recipient of the message. Other fields that make no sense in a trailer are
// accepted, as net/http does: trailers are never merged into the header.
func barredFromTrailer(id FieldID) bool {
	switch id {
	case FieldHost, FieldContentLength, FieldTransferEncoding, FieldConnection, FieldExpect, FieldUpgrade,
		FieldTrailer, FieldTE, FieldKeepAlive, FieldProxyConnection, FieldMaxForwards:
		return true
	}
	return false
}

func checkTrailer(fields []Field) *Error {
	for i := range fields {
		if barredFromTrailer(fields[i].ID) {
			return errTrailerName
		}
	}
	return nil
}

// checkTrailerNames refuses a Trailer field that announces fields that a
// trailer section must not have (RFC 9110 section 6.6.2), before the body is
// read.
func checkTrailerNames(b []byte, fields []Field) *Error {
	for i := range fields {
		if fields[i].ID != FieldTrailer {
			continue
		}
		var elem []byte
		list := fields[i].Value.Bytes(b)
		for len(list) > 0 {
			if elem, list = NextElement(list); barredFromTrailer(LookupField(elem)) {
				return errTrailerName
			}
		}
	}
	return nil
}
