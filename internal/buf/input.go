package buf

// What a connection has received and not consumed is a *Buf, which is nil while that is nothing. The following are for
// these: nil is an empty one, and each returns the one to use from now on.

// Bytes returns the bytes of b.
func (b *Buf) Bytes() []byte {
	if b == nil {
		return nil
	}
	return b.B
}

// Consume drops the first n bytes, and releases b if none are left.
func (b *Buf) Consume(n int) *Buf {
	if b == nil {
		return nil
	}
	if b.B = b.B[n:]; len(b.B) > 0 {
		return b
	}
	b.Release()
	return nil
}

// Drop releases b.
func (b *Buf) Drop() *Buf {
	if b != nil {
		b.Release()
	}
	return nil
}

// Room makes room for n more bytes.
func (b *Buf) Room(n int) *Buf {
	if b == nil {
		return Get(n)
	}
	return b.Grow(n)
}

// Prepend puts a copy of p before the bytes of b.
func (b *Buf) Prepend(p []byte) *Buf {
	if len(p) == 0 {
		return b
	}
	rest := b.Bytes()
	all := Get(len(p) + len(rest))
	all.B = append(append(all.B, p...), rest...)
	b.Drop()
	return all
}

// ReadMore appends the result of one read, which gets room bytes or more, but not more than most. The error is nil if
// anything was read.
func (b *Buf) ReadMore(room, most int, read func([]byte) (int, error)) (*Buf, error) {
	b = b.Room(room)
	have := len(b.B)
	n, err := read(b.B[have:min(cap(b.B), have+most)])
	b.B = b.B[:have+n]
	if n > 0 {
		err = nil
	}
	return b.Consume(0), err
}
