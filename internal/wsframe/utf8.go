package wsframe

import "unicode/utf8"

// UTF8 checks text that arrives in pieces. It fails with the first byte that no
// valid text can have at its place.
type UTF8 struct {
	tail [utf8.UTFMax - 1]byte // the beginning of a character
	n    uint8
}

// Write reports whether the text is valid so far, with p. After false it must not
// be called again.
func (u *UTF8) Write(p []byte) bool {
	for u.n > 0 && len(p) > 0 {
		var char [utf8.UTFMax]byte
		t := append(append(char[:0], u.tail[:u.n]...), p[0])
		p = p[1:]
		if !utf8.FullRune(t) {
			u.n = uint8(copy(u.tail[:], t))
			continue
		}
		// FullRune is also true of what cannot become a character.
		if r, size := utf8.DecodeRune(t); r == utf8.RuneError && size == 1 {
			return false
		}
		u.n = 0
	}
	// The beginning of a character at the end of p, of at most three bytes.
	end := len(p)
	for i := 1; i < utf8.UTFMax && i <= len(p); i++ {
		if c := p[len(p)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(p[len(p)-i:]) {
				end = len(p) - i
			}
			break
		}
	}
	if !utf8.Valid(p[:end]) {
		return false
	}
	if end < len(p) {
		u.n = uint8(copy(u.tail[:], p[end:]))
	}
	return true
}

// Complete reports whether the text ends with a whole character.
func (u *UTF8) Complete() bool { return u.n == 0 }
