package http3

import (
	"strconv"

	"github.com/chert-http/chert/internal/pack"
)

// AppendPrefix appends what a field section begins with: a required insert count and a base
// of 0, as it refers to no dynamic table (RFC 9204 section 4.5.1).
func AppendPrefix(b []byte) []byte { return append(b, 0, 0) }

// AppendStatus appends the pseudo-field of an answer. status has three digits.
func AppendStatus(b []byte, status int) []byte {
	digits := [3]byte{byte('0' + status/100), byte('0' + status/10%10), byte('0' + status%10)}
	for _, i := range indices(pack.IDStatus) {
		if static[i].value == string(digits[:]) {
			return appendIndexed(b, i)
		}
	}
	return append(append(appendReference(b, 0, pack.IDStatus), 3), digits[:]...)
}

// AppendField appends a field. name is in canonical form (net/textproto), or in any
// other: it is sent in lower case. A name or value that must not be in a message is
// left out, which is what net/http does with it. Space around the value is not sent:
// clients may refuse that.
func AppendField(b []byte, name, value string) []byte {
	value, ok := pack.SentValue(value)
	if !ok {
		return b
	}
	if id := pack.Lookup(name); id != 0 {
		return AppendKnown(b, id, value)
	}
	start := len(b)
	if b = pack.AppendName(b, 0x20, 3, name); len(b) == start {
		return b // no name
	}
	return pack.AppendText(b, 0, 7, value)
}

// AppendKnown appends a field that has a NameID, a pseudo-field too, with a value that a
// message may have.
func AppendKnown(b []byte, id pack.NameID, value string) []byte {
	for _, i := range indices(id) {
		if static[i].value == value {
			return appendIndexed(b, i)
		}
	}
	return pack.AppendText(appendReference(b, neverIndexed(id), id), 0, 7, value)
}

// neverIndexed is the bit for it in a reference to a name (RFC 9204 section 4.5.4).
func neverIndexed(id pack.NameID) byte {
	if pack.Secret(id) {
		return 0x20
	}
	return 0
}

// AppendInt is AppendKnown for a number.
func AppendInt(b []byte, id pack.NameID, n int64) []byte {
	if n == 0 {
		return AppendKnown(b, id, "0") // which the table has of two fields
	}
	var digits [20]byte
	d := strconv.AppendInt(digits[:0], n, 10)
	// Huffman makes five bits of 0 to 2 and six of the others: too little to count.
	return append(append(appendReference(b, 0, id), byte(len(d))), d...)
}

// appendIndexed appends a field that is in the static table.
func appendIndexed(b []byte, i uint8) []byte { return pack.AppendInteger(b, 0xc0, 6, uint(i)) }

// appendReference appends the name of a field whose value follows. flag is neverIndexed.
func appendReference(b []byte, flag byte, id pack.NameID) []byte {
	if all := indices(id); len(all) > 0 {
		return pack.AppendInteger(b, 0x50|flag, 4, uint(all[0]))
	}
	return pack.AppendText(b, 0x20|flag>>1, 3, id.Name()) // RFC 9204 section 4.5.6
}

var types pack.Memo

// AppendType is AppendField for a Content-Type.
func AppendType(b []byte, value string) []byte { return types.Append(b, value, appendType) }

func appendType(b []byte, value string) []byte { return AppendField(b, "Content-Type", value) }
