package http1

// requestLine parses method SP request-target SP HTTP-version CRLF at b[i:] and
// returns the offset after it; 0 means need more, or refused if there is an
// error.
func (r *Request) requestLine(b []byte, i int) (next int, e *Error) {
	// RFC 9112 section 3: exactly one SP between the parts. A recipient may
	// split on other whitespace; that would allow two readings of one line.
	start := i
	i = tokenEnd(b, i)
	if i == len(b) {
		return 0, nil
	}
	if i == start || b[i] != ' ' {
		return 0, refuse(b, i, errMethod)
	}
	r.Method = Span{uint32(start), uint32(i)}

	start = i + 1
	i = targetEnd(b, start)
	if i == len(b) {
		return 0, nil
	}
	if i == start || b[i] != ' ' {
		return 0, refuse(b, i, errTarget)
	}
	r.Target = Span{uint32(start), uint32(i)}

	// RFC 9112 section 2.3: HTTP-name is case-sensitive, one digit each.
	start = i + 1
	const version = "HTTP/1.1\r\n"
	if r.isRPC(b, start) {
		if len(b)-start < len(rpcVersion) {
			return 0, nil
		}
		r.rpc, r.Form = true, FormOrigin
		return start + len(rpcVersion) - 1, nil
	}
	if len(b)-start < len(version) {
		return 0, refuse(b, start, errVersion)
	}
	v := b[start : start+len(version)]
	if string(v[:5]) != "HTTP/" || !isDigit(v[5]) || v[6] != '.' || !isDigit(v[7]) || v[8] != '\r' || v[9] != '\n' {
		return 0, refuse(b, start, errVersion)
	}
	if v[5] != '1' {
		if string(r.Method.Bytes(b)) != "PRI" || string(r.Target.Bytes(b)) != "*" || string(v[5:8]) != "2.0" {
			return 0, errMajor
		}
		r.Preface, r.Minor, r.Form = true, 1, FormAsterisk
		return start + len(version), nil
	}
	r.Minor = v[7] - '0'
	if e := r.targetForm(b); e != nil {
		return 0, e
	}
	return start + len(version), nil
}

// rpcVersion is the end of the head that net/rpc's DialHTTP sends: LF without
// CR, no fields. It is the only place where a bare LF is accepted, since it
// cannot hide anything there: the head is complete and without a body, and
// HTTP/1.0 keeps no connection.
const rpcVersion = "HTTP/1.0\n\n"

// isRPC reports whether b[start:] is rpcVersion or a prefix of it, longer than
// what other versions share with it, after a CONNECT to a path.
func (r *Request) isRPC(b []byte, start int) bool {
	n := min(len(b)-start, len(rpcVersion))
	return n > len(rpcVersion)-2 && string(b[start:start+n]) == rpcVersion[:n] &&
		string(r.Method.Bytes(b)) == "CONNECT" && r.Target.Bytes(b)[0] == '/'
}

// targetForm determines the form of the target and whether the method allows
// it. Paths and queries are validated by net/url.
func (r *Request) targetForm(b []byte) *Error {
	method, target := r.Method.Bytes(b), r.Target.Bytes(b)
	switch {
	case target[0] == '/':
		// With CONNECT too: net/rpc connects to a path.
		r.Form = FormOrigin
	case string(method) == "CONNECT":
		// RFC 9112 section 3.2.3. RFC 9110 section 9.3.6: a CONNECT to an empty
		// or invalid port must be refused.
		host, port, ok := splitHost(target)
		if !ok || len(host) == 0 || !validPort(port) {
			return errTargetForm
		}
		r.Form = FormAuthority
	case string(target) == "*":
		// RFC 9112 section 3.2.4 has it for a server-wide OPTIONS only. With
		// other methods the handler must refuse it, as ServeMux does.
		r.Form = FormAsterisk
	default:
		auth, _ := SplitAbsolute(target)
		host, _, ok := splitHost(auth)
		// RFC 9110 section 4.2.1: an empty host must be refused. Section 4.2.4:
		// userinfo ought to be; splitHost does not let '@' through.
		if !ok || len(host) == 0 {
			return errTargetForm
		}
		r.Form = FormAbsolute
	}
	return nil
}

// SplitAbsolute splits an absolute URI after its authority: "http://a:80/b?c" into
// "a:80" and "/b?c". rest may be empty, or begin with '?' or '#'. Both are nil if uri
// does not begin with a scheme and "://" (RFC 3986 section 3).
func SplitAbsolute(uri []byte) (authority, rest []byte) {
	i := 0
	for i < len(uri) && (isAlpha(uri[i]) || i > 0 &&
		(isDigit(uri[i]) || uri[i] == '+' || uri[i] == '-' || uri[i] == '.')) {
		i++
	}
	if i == 0 || len(uri)-i < 3 || string(uri[i:i+3]) != "://" {
		return nil, nil
	}
	uri = uri[i+3:]
	for j, c := range uri {
		if c == '/' || c == '?' || c == '#' {
			return uri[:j], uri[j:]
		}
	}
	return uri, nil
}
