package http2

import (
	"strings"
	"sync/atomic"
)

// types are Content-Type fields that were encoded last: a server has few, and sends one
// of them with nearly every answer.
var types [16]atomic.Pointer[typeBlock]

type typeBlock struct {
	value string
	block []byte
}

// maxType bounds the values that are kept, in bytes.
const maxType = 128

// AppendType is AppendField for a Content-Type.
func AppendType(b []byte, value string) []byte {
	if len(value) == 0 || len(value) > maxType {
		return AppendField(b, "Content-Type", value)
	}
	at := &types[(len(value)+int(value[len(value)-1]))%len(types)]
	t := at.Load()
	if t == nil || t.value != value {
		t = &typeBlock{strings.Clone(value), AppendField(nil, "Content-Type", value)}
		at.Store(t)
	}
	return append(b, t.block...)
}
