package percent

// A Set is the bytes that are not encoded. Immutable.
type Set [256]bool

// Of returns the letters and digits of ASCII, and others.
func Of(others string) *Set {
	s := new(Set)
	for c := range s {
		s[c] = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
	}
	for i := range len(others) {
		s[others[i]] = true
	}
	return s
}

// But returns all visible bytes (0x21 to 0x7e) except others.
func But(others string) *Set {
	s := new(Set)
	for c := '!'; c <= '~'; c++ {
		s[c] = true
	}
	for i := range len(others) {
		s[others[i]] = false
	}
	return s
}

// Append appends text to b, with all bytes encoded that are not in keep.
func Append[T []byte | string](b []byte, text T, keep *Set) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(text) {
		if c := text[i]; keep[c] {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return b
}
