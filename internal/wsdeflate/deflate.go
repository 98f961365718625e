package wsdeflate

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
)

// tail ends the data of a Flush; it is not sent (RFC 7692 section 7.2.1).
const tail = "\x00\x00\xff\xff"

// final is a last, empty block, so that inflating ends without an error.
const final = "\x01\x00\x00\xff\xff"

// A Window is the last plain bytes of one direction of a connection with context
// takeover. The zero Window is empty.
type Window struct{ b []byte }

// Add adds a message. The window then holds at most 2^bits bytes.
func (w *Window) Add(p []byte, bits uint8) {
	size := 1 << bits
	if len(p) > size {
		p = p[len(p)-size:]
	}
	if more := len(w.b) + len(p) - size; more > 0 {
		w.b = w.b[:copy(w.b, w.b[more:])]
	}
	if n := len(w.b) + len(p); n > cap(w.b) {
		// By doubling, but never to more than it may hold.
		b := make([]byte, len(w.b), min(max(2*cap(w.b), n, 256), size))
		copy(b, w.b)
		w.b = b
	}
	w.b = append(w.b, p...)
}

// Len returns how many bytes the window holds. w may be nil.
func (w *Window) Len() int { return len(w.bytes()) }

func (w *Window) bytes() []byte {
	if w == nil {
		return nil
	}
	return w.b
}

// writers are compressors by the bits of their windows.
var writers [MaxBits + 1]sync.Pool

// appender is an io.Writer that appends.
type appender struct{ b []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.b = append(a.b, p...)
	return len(p), nil
}

// compressor is what writers hold.
type compressor struct {
	w   *flate.Writer
	out appender
}

// short is the length below which flate.Writer does not search for repetitions, neither
// in the message nor in the window.
const short = 128

// Deflate appends p, compressed with a window of 2^bits bytes, to dst. With w, which
// may be nil, it is primed. p must not be empty.
func Deflate(dst, p []byte, w *Window, bits uint8) []byte {
	if d := w.bytes(); len(p) < short && len(d) > 0 {
		// Its window is 32 KiB, so no more than 2^bits must be in sight.
		if in := 1<<bits - len(p); len(d) > in {
			d = d[len(d)-in:]
		}
		out := appender{dst}
		flate.StatelessDeflate(&out, p, false, d) // an appender returns no error
		return bytes.TrimSuffix(out.b, []byte(tail))
	}
	c, _ := writers[bits].Get().(*compressor)
	if c == nil {
		fw, err := flate.NewWriterWindow(nil, 1<<bits)
		if err != nil {
			panic(err) // bits are not those of Params
		}
		c = &compressor{w: fw}
	}
	c.out.b = dst
	c.w.ResetDict(&c.out, w.bytes())
	c.w.Write(p) // an appender returns no error
	c.w.Flush()
	out := c.out.b
	c.out.b = nil
	// It keeps the dictionary until the next one.
	c.w.ResetDict(io.Discard, nil)
	writers[bits].Put(c)
	return bytes.TrimSuffix(out, []byte(tail))
}

var (
	// ErrTooBig means that a message is larger than it may be.
	ErrTooBig = errors.New("message too large")
	// ErrCorrupt means that a message is no compressed data.
	ErrCorrupt = errors.New("corrupt compressed data")
)

// decompressor is what readers hold.
type decompressor struct {
	r  io.ReadCloser // a flate.Resetter
	in input
}

var readers = sync.Pool{New: func() any { return &decompressor{r: flate.NewReader(new(input))} }}

// input is a message followed by tail and final. It is an io.ByteReader, so nothing
// is read beyond a block that is marked as the last.
type input struct {
	p     []byte
	after string
}

func (in *input) Read(b []byte) (n int, err error) {
	if n = copy(b, in.p); n > 0 {
		in.p = in.p[n:]
		return n, nil
	}
	if n = copy(b, in.after); n > 0 {
		in.after = in.after[n:]
		return n, nil
	}
	return 0, io.EOF
}

func (in *input) ReadByte() (c byte, err error) {
	switch {
	case len(in.p) > 0:
		c, in.p = in.p[0], in.p[1:]
	case len(in.after) > 0:
		c, in.after = in.after[0], in.after[1:]
	default:
		err = io.EOF
	}
	return c, err
}

// firstOut is the least room that is made for a message.
const firstOut = 512

// Inflate appends what p is, inflated, to dst, of at most limit bytes unless that is
// 0. w, which may be nil, is the sender's window. Memory grows with what comes out.
func Inflate(dst, p []byte, w *Window, limit int64) ([]byte, error) {
	d := readers.Get().(*decompressor)
	d.in = input{p, tail + final}
	d.r.(flate.Resetter).Reset(&d.in, w.bytes())
	out, err := d.inflate(dst, limit)
	if err == nil && len(d.in.after) == len(tail+final) && len(d.in.p) > 0 && string(d.in.p) != "\x00" {
		// RFC 7692 section 7.2.3.4: after a block marked as the last, one zero byte
		// begins the empty block that tail ends. A stream that continues after it is
		// refused: each block would cost a new decompressor.
		err = ErrCorrupt
	}
	d.in = input{}
	d.r.(flate.Resetter).Reset(&d.in, nil)
	readers.Put(d)
	return out, err
}

func (d *decompressor) inflate(dst []byte, limit int64) ([]byte, error) {
	start := len(dst)
	for {
		if len(dst) == cap(dst) {
			room := max(cap(dst)-start, firstOut)
			if limit > 0 { // one byte more shows that it is exceeded
				room = int(min(int64(room), limit+1-int64(len(dst)-start)))
			}
			b := make([]byte, len(dst), len(dst)+room)
			copy(b, dst)
			dst = b
		}
		n, err := d.r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		switch {
		case limit > 0 && int64(len(dst)-start) > limit:
			return dst[:start], ErrTooBig
		case err == io.EOF:
			return dst, nil
		case err != nil:
			return dst[:start], ErrCorrupt
		}
	}
}
