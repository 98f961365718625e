package view

import "testing"

func TestViews(t *testing.T) {
	for _, s := range []string{"", "a", "a longer text"} {
		if got := String([]byte(s)); got != s {
			t.Errorf("String of %q is %q", s, got)
		}
		if got := string(Bytes(s)); got != s {
			t.Errorf("Bytes of %q is %q", s, got)
		}
	}
	if got := String(nil); got != "" {
		t.Errorf("String of nil is %q", got)
	}
	b := []byte("abc")
	s := String(b)
	if n := testing.AllocsPerRun(100, func() { s = String(Bytes(String(b))) }); n != 0 || s != "abc" {
		t.Errorf("%v allocations, %q", n, s)
	}
	if b[1] = 'x'; s != "axc" {
		t.Errorf("%q is a copy", s)
	}
}
