package pack

import (
	"strings"
	"sync/atomic"
)

// Memo keeps the encodings of the values of a field that were encoded last, of which there
// are few: a server sends one of some Content-Types with nearly every answer. Safe for
// concurrent use.
type Memo [16]atomic.Pointer[memo]

type memo struct {
	value string
	block []byte
}

// maxMemo bounds the values that are kept, in bytes.
const maxMemo = 128

// Append appends what encode appends for the value.
func (m *Memo) Append(b []byte, value string, encode func(b []byte, value string) []byte) []byte {
	if len(value) == 0 || len(value) > maxMemo {
		return encode(b, value)
	}
	at := &m[(len(value)+int(value[len(value)-1]))%len(m)]
	e := at.Load()
	if e == nil || e.value != value {
		e = &memo{strings.Clone(value), encode(nil, value)}
		at.Store(e)
	}
	return append(b, e.block...)
}
