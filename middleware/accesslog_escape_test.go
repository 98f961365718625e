package middleware

import (
	"fmt"
	"strings"
	"testing"
)

// escapeOne returns the escaped form of one byte.
func escapeOne(c, least byte) string {
	if c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c < least {
		return fmt.Sprintf(`\x%02X`, c)
	}
	return string(rune(c))
}

// Every byte value at every position, in strings of all lengths around a word's,
// beside bytes that cause a carry or a borrow.
func TestEscapeEveryByte(t *testing.T) {
	t.Parallel()
	for _, least := range []byte{' ', '!'} {
		for n := 1; n <= 25; n++ {
			for _, around := range []byte{'a', '~', '!', '#', '[', ']', ' '} {
				in := []byte(strings.Repeat(string(rune(around)), n))
				for at := range n {
					for c := range 256 {
						in[at] = byte(c)
						var want strings.Builder
						want.WriteString("abc")
						for _, c := range in {
							want.WriteString(escapeOne(c, least))
						}
						room := make([]byte, 3, 200)
						copy(room, "abc")
						copy(room[3:100], strings.Repeat("z", 97))
						got := escape(room, string(in), least)
						if string(got) != want.String() {
							t.Fatalf("%q from %d: got %q, want %q", in, least, got, want.String())
						}
					}
					in[at] = around
				}
			}
		}
	}
}
