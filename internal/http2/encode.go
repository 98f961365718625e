package http2

import (
	"strconv"

	"github.com/chert-http/chert/internal/pack"
)

// NoTable, at the start of a header block, is an update of the table's size to 0. One
// is due in the first block after a client has made the table smaller (RFC 9113 section
// 4.3.1): the encoder uses no table, but the client's decoder does not know.
const NoTable byte = 0x20

// statusIndex are the indices of the static table for whole status fields.
func statusIndex(status int) byte {
	switch status {
	case 200:
		return 8
	case 204:
		return 9
	case 206:
		return 10
	case 304:
		return 11
	case 400:
		return 12
	case 404:
		return 13
	case 500:
		return 14
	}
	return 0
}

// AppendStatus appends the pseudo-field of an answer. status has three digits.
func AppendStatus(b []byte, status int) []byte {
	if i := statusIndex(status); i != 0 {
		return append(b, 0x80|i)
	}
	return append(b, byte(pack.IDStatus), 3, byte('0'+status/100), byte('0'+status/10%10), byte('0'+status%10))
}

// AppendField appends a field. name is in canonical form (net/textproto), or in any
// other: it is sent in lower case. A name or value that must not be in a message is
// left out, which is what net/http does with it. Space around the value is not sent:
// clients may refuse that (RFC 9113 section 8.2.1).
func AppendField(b []byte, name, value string) []byte {
	value, ok := pack.SentValue(value)
	if !ok {
		return b
	}
	if id := pack.Lookup(name); id != 0 && id <= lastID {
		return AppendKnown(b, id, value)
	}
	start := len(b)
	if b = pack.AppendName(append(b, 0), 0, 7, name); len(b) == start+1 {
		return b[:start] // no name
	}
	return pack.AppendText(b, 0, 7, value)
}

// lastID is the last of those that the static table has. Up to it they are indices.
const lastID = pack.IDWWWAuthenticate

// AppendKnown appends an ordinary field whose name is in the static table and whose value is
// one that a message may have.
func AppendKnown(b []byte, id pack.NameID, value string) []byte {
	flag := byte(0)
	if pack.Secret(id) {
		flag = 0x10 // never indexed
	}
	return pack.AppendText(appendIndex(b, flag, id), 0, 7, value)
}

// appendIndex appends the index of a name, with a prefix of 4 bits: those below 15 are of pseudo-fields.
func appendIndex(b []byte, flag byte, id pack.NameID) []byte {
	return append(b, flag|15, byte(id)-15)
}

// AppendInt is AppendKnown for a number.
func AppendInt(b []byte, id pack.NameID, n int64) []byte {
	var digits [20]byte
	d := strconv.AppendInt(digits[:0], n, 10)
	// Huffman makes five bits of 0 to 2 and six of the others: too little to count.
	return append(append(appendIndex(b, 0, id), byte(len(d))), d...)
}

var types pack.Memo

// AppendType is AppendField for a Content-Type.
func AppendType(b []byte, value string) []byte { return types.Append(b, value, appendType) }

func appendType(b []byte, value string) []byte { return AppendField(b, "Content-Type", value) }
