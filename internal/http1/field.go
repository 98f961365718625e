package http1

// String returns the canonical MIME form of the name, "" for FieldUnknown.
func (id FieldID) String() string {
	if id >= fieldCount {
		return ""
	}
	return fieldNames[id]
}

// fieldSlots is a hash table of FieldIDs with linear probing; a zero ends the
// probe. The factors in fieldSlot leave four of the known names without a slot
// of their own; a test keeps an eye on that.
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
