package wsdeflate

import (
	"errors"
	"strconv"
	"strings"
)

// name is the extension's in the IANA registry.
const name = "permessage-deflate"

// Limits of a window's size, as the power of two that it is in bytes (RFC 7692
// section 7.1.2).
const (
	MinBits = 8
	MaxBits = 15
)

// Params are the extension's parameters on one connection, or those a server
// wants. Bits are of the server's window, with which it compresses, and ClientBits
// of the client's.
type Params struct {
	Bits, ClientBits             uint8
	NoTakeover, ClientNoTakeover bool
}

// ErrMalformed means that the field does not have the form of section 9.1 of
// RFC 6455, so the handshake must fail.
var ErrMalformed = errors.New("malformed Sec-WebSocket-Extensions")

// Negotiate chooses among the offers in the values of a request's
// Sec-WebSocket-Extensions. It returns the parameters with the value of the
// response's field, or "" if no offer is acceptable.
//
// A client that cannot limit its window is not allowed context takeover if want
// limits it: the server would have to keep 32 KiB for it.
func Negotiate(fields []string, want Params) (p Params, response string, err error) {
	n := 0
	for _, f := range fields {
		for rest := next(f); rest != ""; rest = next(rest) {
			var o offer
			if rest, err = o.parse(rest); err != nil {
				return Params{}, "", err
			}
			if n++; response == "" && o.name == name && !o.bad {
				p, response = o.accept(want)
			}
		}
	}
	if n == 0 && len(fields) > 0 {
		return Params{}, "", ErrMalformed
	}
	return p, response, nil
}

// offer is one element of the field.
type offer struct {
	name string
	bad  bool // it must be declined
	seen map[string]bool
	// bits and clientBits are 0 if the parameter is not there.
	bits, clientBits             uint8
	noTakeover, clientNoTakeover bool
}

// accept returns the parameters that result from the offer, and the response.
func (o *offer) accept(want Params) (Params, string) {
	p := want
	p.NoTakeover = want.NoTakeover || o.noTakeover
	p.ClientNoTakeover = want.ClientNoTakeover || o.clientNoTakeover
	r := name
	if o.bits != 0 {
		// RFC 7692 section 7.1.2.1: accepted with the same or a smaller value.
		p.Bits = min(p.Bits, o.bits)
		r += "; server_max_window_bits=" + strconv.Itoa(int(p.Bits))
	}
	if o.clientBits != 0 {
		if p.ClientBits = min(p.ClientBits, o.clientBits); p.ClientBits < MaxBits {
			r += "; client_max_window_bits=" + strconv.Itoa(int(p.ClientBits))
		}
	} else {
		// Section 7.1.2.2: MUST NOT be in the response without being in the offer.
		p.ClientNoTakeover = p.ClientNoTakeover || p.ClientBits < MaxBits
		p.ClientBits = MaxBits
	}
	if p.NoTakeover {
		r += "; server_no_context_takeover"
	}
	if p.ClientNoTakeover {
		r += "; client_no_context_takeover"
	}
	return p, r
}

// parse parses the element at the start of s. rest is empty or begins with a
// comma.
func (o *offer) parse(s string) (rest string, err error) {
	if o.name, s = token(s); o.name == "" {
		return "", ErrMalformed
	}
	for s = skip(s); strings.HasPrefix(s, ";"); s = skip(s) {
		var key, value string
		if key, s = token(skip(s[1:])); key == "" {
			return "", ErrMalformed
		}
		hasValue := false
		if s = skip(s); strings.HasPrefix(s, "=") {
			hasValue = true
			if value, s, err = parameter(skip(s[1:])); err != nil {
				return "", err
			}
		}
		o.set(key, value, hasValue)
	}
	if s != "" && s[0] != ',' {
		return "", ErrMalformed
	}
	return s, nil
}

// set records a parameter. Section 7.1: an offer with unknown parameters, with
// invalid values or with a parameter twice MUST be declined.
func (o *offer) set(key, value string, hasValue bool) {
	if o.name != name {
		return
	}
	if o.seen == nil {
		o.seen = make(map[string]bool)
	}
	if o.seen[key] {
		o.bad = true
	}
	o.seen[key] = true
	switch key {
	case "server_no_context_takeover":
		o.noTakeover = true
		o.bad = o.bad || hasValue
	case "client_no_context_takeover":
		o.clientNoTakeover = true
		o.bad = o.bad || hasValue
	case "server_max_window_bits":
		o.bits = bits(value)
		o.bad = o.bad || o.bits == 0
	case "client_max_window_bits":
		if o.clientBits = MaxBits; hasValue {
			o.clientBits = bits(value)
		}
		o.bad = o.bad || o.clientBits == 0
	default:
		o.bad = true
	}
}

// bits parses a decimal number from 8 to 15 without leading zeros; 0 is an error.
func bits(s string) uint8 {
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil || s[0] == '0' || s[0] == '+' || n < MinBits || n > MaxBits {
		return 0
	}
	return uint8(n)
}

// parameter parses a value: a token, or a quoted string that is one when
// unquoted (RFC 6455 section 9.1).
func parameter(s string) (value, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		if value, rest = token(s); value == "" {
			return "", "", ErrMalformed
		}
		return value, rest, nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			value = b.String()
			if t, more := token(value); t == "" || more != "" {
				return "", "", ErrMalformed
			}
			return value, s[i+1:], nil
		case s[i] == '\\':
			if i++; i == len(s) {
				return "", "", ErrMalformed
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", ErrMalformed
}

// next skips what is before an element of a list. Empty ones are permitted (RFC 2616 section 2.1, whose lists RFC 6455
// has, and RFC 9110 section 5.6.1.2).
func next(s string) string { return strings.TrimLeft(s, ", \t") }

func skip(s string) string { return strings.TrimLeft(s, " \t") }

// token cuts the token (RFC 9110 section 5.6.2) at the start of s.
func token(s string) (t, rest string) {
	i := 0
	for i < len(s) && isToken(s[i]) {
		i++
	}
	return s[:i], s[i:]
}

func isToken(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}
