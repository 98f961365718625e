//go:build linux

package sim

// A fifo is a queue of bytes, which keeps its memory when it is empty.
type fifo struct {
	b    []byte
	from int // b[from:] is in the queue
}

func (f *fifo) len() int { return len(f.b) - f.from }

func (f *fifo) add(p []byte) {
	if f.from > 0 && len(f.b)+len(p) > cap(f.b) {
		f.b = f.b[:copy(f.b, f.b[f.from:])]
		f.from = 0
	}
	if f.b == nil {
		f.b = make([]byte, 0, max(len(p), 1024))
	}
	f.b = append(f.b, p...)
}

// take moves as many bytes as there are to the front of p, and returns how many.
func (f *fifo) take(p []byte) int {
	n := copy(p, f.b[f.from:])
	if f.from += n; f.from == len(f.b) {
		f.b, f.from = f.b[:0], 0
	}
	return n
}
