package http1

// ParseTrailer reads the trailer section that follows the last chunk, at least
// an empty line, from the start of b. Results are those of Request.Parse. out
// uses the array of fields, whose contents are overwritten; on need more and on
// error keep the slice that was passed.
func ParseTrailer(b []byte, fields []Field, p *Progress, lim *Limits) (n int, out []Field, err error) {
	if p == nil {
		p = new(Progress)
	}
	headBytes, maxFields := lim.Get()
	full := len(b) >= headBytes
	if full {
		b = b[:headBytes]
	}
	if !full && p.wait(b, maxFields, false) {
		return 0, fields[:0], nil
	}
	n, out, e := parseTrailer(b, fields[:0], maxFields, p)
	if n == 0 && e == nil {
		if !full {
			return 0, out, nil
		}
		e = errHeadTooLong
	}
	*p = Progress{}
	if e != nil {
		return 0, out, e
	}
	return n, out, nil
}

func parseTrailer(b []byte, fields []Field, maxFields int, p *Progress) (int, []Field, *Error) {
	*p = Progress{scanned: uint32(len(b))}
	i := 0
	for i < len(b) {
		if b[i] == '\r' {
			n, e := emptyLine(b, i)
			if n > 0 {
				e = checkTrailer(fields)
			}
			return n, fields, e
		}
		k := len(fields)
		if k == maxFields {
			return 0, fields, refuse(b, i, errTooManyFields)
		}
		fields = append(fields, Field{})
		var e *Error
		if i, e = fields[k].parse(b, i); i == 0 {
			return 0, fields, e
		}
		p.fields++
	}
	return 0, fields, nil
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
func (r *Request) checkTrailerNames(b []byte) *Error {
	for i := range r.Fields {
		if r.Fields[i].ID != FieldTrailer {
			continue
		}
		var elem []byte
		list := r.Fields[i].Value.Bytes(b)
		for len(list) > 0 {
			if elem, list = nextElement(list); barredFromTrailer(LookupField(elem)) {
				return errTrailerName
			}
		}
	}
	return nil
}
