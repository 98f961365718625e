package buf

import (
	"errors"
	"io"
	"testing"
)

// Each step begins with what the one before has left; nil is nothing.
func TestInput(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	reads := func(s string, err error) func([]byte) (int, error) {
		return func(p []byte) (int, error) { return copy(p, s), err }
	}
	var b *Buf
	for i, step := range []struct {
		do   func() error
		want string
		err  error
	}{
		{func() error { b = b.Consume(0); return nil }, "", nil},
		{func() error { b = b.Drop(); return nil }, "", nil},
		{func() error { b = b.Prepend(nil); return nil }, "", nil},
		{func() (err error) { b, err = b.ReadMore(10, 100, reads("", broken)); return err }, "", broken},
		{func() (err error) { b, err = b.ReadMore(10, 100, reads("abc", nil)); return err }, "abc", nil},
		{func() (err error) { b, err = b.ReadMore(10, 2, reads("defg", nil)); return err }, "abcde", nil},
		{func() (err error) { b, err = b.ReadMore(10, 100, reads("", io.EOF)); return err }, "abcde", io.EOF},
		{func() (err error) { b, err = b.ReadMore(10, 100, reads("fg", io.EOF)); return err }, "abcdefg", nil},
		{func() error { b = b.Consume(3); return nil }, "defg", nil},
		{func() error { b = b.Prepend([]byte("xy")); return nil }, "xydefg", nil},
		{func() error { b = b.Room(1 << 10); return nil }, "xydefg", nil},
		{func() error { b = b.Consume(6); return nil }, "", nil},
		{func() error { b = b.Room(700); return nil }, "", nil},
		{func() error { b = b.Consume(0); return nil }, "", nil},
		{func() error { b = b.Prepend([]byte("z")); return nil }, "z", nil},
		{func() error { b = b.Drop(); return nil }, "", nil},
	} {
		if err := step.do(); err != step.err || string(b.Bytes()) != step.want {
			t.Fatalf("step %d: %q, %v, want %q, %v", i, b.Bytes(), err, step.want, step.err)
		}
		if b != nil && !b.lent {
			t.Fatalf("step %d: the buffer was released", i)
		}
	}
	if b != nil {
		t.Error("an empty buffer is kept")
	}
}

// What is consumed is released. Not parallel: another test would get the buffer.
func TestInputReleases(t *testing.T) {
	b := Get(10)
	b.B = append(b.B, "abc"...)
	had := b
	if b = b.Consume(3); b != nil || had.lent {
		t.Error("not released")
	}
	b = Get(10)
	b.B = append(b.B, "abc"...)
	had = b
	if b = b.Prepend([]byte("x")); b == had || had.lent {
		t.Error("not released when it was copied")
	}
	b.Drop()
}
