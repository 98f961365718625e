package http1

import (
	"encoding/binary"
	"math/bits"
)

// String returns the canonical MIME form of the name, "" for FieldUnknown.
func (id FieldID) String() string {
	if id >= fieldCount {
		return ""
	}
	return fieldNames[id]
}

// fieldSlots is a hash table of FieldIDs with linear probing; a zero ends the
// probe. The factors in fieldSlot leave four of the known names without a slot
// of their own; a test checks that.
var fieldSlots, maxFieldName = hashFields()

func hashFields() (slots [256]FieldID, longest int) {
	for id := FieldUnknown + 1; id < fieldCount; id++ {
		name := fieldNames[id]
		h := fieldSlot(len(name), name[0], name[len(name)/2], name[len(name)-1])
		for slots[h] != 0 {
			h++
		}
		slots[h] = id
		longest = max(longest, len(name))
	}
	return slots, longest
}

func fieldSlot(n int, first, middle, last byte) uint8 {
	return uint8(n)*47 + (first|0x20)*19 + (last|0x20)*49 + (middle | 0x20)
}

// LookupField returns the FieldID of name, in any case, or FieldUnknown.
func LookupField(name []byte) FieldID {
	n := len(name)
	if n == 0 || n > maxFieldName {
		return FieldUnknown
	}
	h := fieldSlot(n, name[0], name[n/2], name[n-1])
	for {
		id := fieldSlots[h]
		if id == 0 {
			return FieldUnknown
		}
		// Most clients send the canonical form, and that compares faster.
		if s := fieldNames[id]; string(name) == s || FoldEqual(name, s) {
			return id
		}
		h++
	}
}

// A fieldKey is a name and the colon after it, as words. care has the bits that
// must match: all of these bytes, except the case bit of letters.
type fieldKey struct{ name, care [keyWords]uint64 }

const keyWords = 4

// fieldKeys has the keys of the names that fit, which are nearly all.
var fieldKeys = func() (t [fieldCount]fieldKey) {
	for id := FieldUnknown + 1; id < fieldCount; id++ {
		line := fieldNames[id] + ":"
		if len(line) > 8*keyWords {
			t[id].name[0], t[id].care[0] = ':', 0xff // no name begins with it
			continue
		}
		for i := range len(line) {
			care := uint64(0xff)
			if isAlpha(line[i]) {
				care &^= 0x20
			}
			t[id].name[i/8] |= uint64(line[i]) << (i % 8 * 8)
			t[id].care[i/8] |= care << (i % 8 * 8)
		}
	}
	return t
}()

// knownField looks for a known name, with its colon, at the beginning of b and
// returns it and how long it is without the colon. If it finds none, n is 0, but
// the name may still be a known one. It saves time: a name it finds need not be
// checked to be a token.
func knownField(b []byte) (id FieldID, n int) {
	if len(b) < 8*keyWords {
		return FieldUnknown, 0
	}
	for ; ; n += 8 {
		if n == 8*keyWords {
			return FieldUnknown, 0
		}
		// The lowest mark of a zero byte is correct, as in stops.
		x := binary.LittleEndian.Uint64(b[n:]) ^ ':'*ones
		if m := (x - ones) &^ x & tops; m != 0 {
			n += bits.TrailingZeros64(m) >> 3
			break
		}
	}
	if n == 0 {
		return FieldUnknown, 0
	}
	h := fieldSlot(n, b[0], b[n/2], b[n-1])
	for {
		if id = fieldSlots[h]; id == FieldUnknown {
			return FieldUnknown, 0
		}
		key := &fieldKeys[id]
		diff := (binary.LittleEndian.Uint64(b) ^ key.name[0]) & key.care[0]
		for i := 1; i <= n/8; i++ {
			diff |= (binary.LittleEndian.Uint64(b[8*i:]) ^ key.name[i]) & key.care[i]
		}
		if diff == 0 {
			return id, n
		}
		h++
	}
}

// CanonicalName returns id's name or, for FieldUnknown, the canonical MIME form
// of name as net/textproto makes it: a name that is not a token stays as it is.
// Only that case allocates: once, up to 64 bytes.
func CanonicalName(name []byte, id FieldID) string {
	if id != FieldUnknown {
		return id.String()
	}
	if tokenEnd(name, 0) != len(name) {
		return string(name)
	}
	var short [64]byte
	canon := append(short[:0], name...)
	upper := true
	for i, c := range canon {
		if c = lower(c); upper && isAlpha(c) {
			c -= 'a' - 'A'
		}
		canon[i] = c
		upper = c == '-'
	}
	return string(canon)
}
