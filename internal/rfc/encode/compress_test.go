package encode

import (
	"bytes"
	stdgzip "compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/chert-http/chert/internal/rfc/coding"
	"github.com/chert-http/chert/internal/testing/race"
	"github.com/klauspost/compress/zstd"
)

var coders = []coding.Coding{coding.Gzip, coding.Brotli, coding.Zstd}

// decode decodes all of b, with the limits of a browser.
func decode(b []byte, c coding.Coding) ([]byte, error) {
	switch c {
	case coding.Gzip: // by std: an implementation of its own
		r, err := stdgzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	case coding.Brotli:
		return io.ReadAll(brotli.NewReader(bytes.NewReader(b)))
	case coding.Zstd:
		r, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(r)
	}
	return b, nil
}

// sample is n bytes, somewhat like a script.
func sample(n int) []byte {
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, 0, n+32)
	for len(b) < n {
		b = fmt.Appendf(b, "function f%d(a, b) { return a[%d] + b; }\n", rnd.IntN(50), rnd.IntN(9999))
	}
	return b[:n]
}

func noise(n int) []byte {
	rnd := rand.New(rand.NewPCG(2, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

func TestCompress(t *testing.T) {
	t.Parallel()
	for name, src := range map[string][]byte{
		"nothing":            {},
		"nil":                nil,
		"a byte":             {0},
		"a page":             sample(20_000),
		"noise":              noise(70_000),
		"keepMax-1":          sample(keepMax - 1), // the last of one effort
		"keepMax":            sample(keepMax),
		"more than a window": bytes.Repeat(noise(1<<20), 9),
	} {
		for _, c := range append(coders, coding.Identity) {
			if len(src) > maxWindow && c != coding.Zstd {
				continue // a window that large is zstd's alone
			}
			t.Run(c.String()+" of "+name, func(t *testing.T) {
				t.Parallel()
				got, err := Compress([]byte("before"), src, c)
				if err != nil {
					t.Fatal(err)
				}
				rest, ok := bytes.CutPrefix(got, []byte("before"))
				if !ok {
					t.Fatal("what was in dst is gone")
				}
				if back, err := decode(rest, c); err != nil || !bytes.Equal(back, src) {
					t.Fatalf("decodes to %d bytes, %v; want the %d that went in", len(back), err, len(src))
				}
				if c != coding.Identity && strings.Contains(name, "page") && len(rest) > len(src)/2 {
					t.Errorf("%d bytes became %d", len(src), len(rest))
				}
			})
		}
	}
}

// TestWindow: RFC 9659 section 3: a frame must not need a window beyond 8 MB.
func TestWindow(t *testing.T) {
	t.Parallel()
	header := func(b []byte) (h zstd.Header) {
		t.Helper()
		if err := h.Decode(b); err != nil {
			t.Fatal(err)
		}
		return h
	}
	for _, n := range []int{300, keepMax - 1, keepMax, maxWindow - 1, maxWindow, maxWindow + 1, 2*maxWindow + 1} {
		b, err := Compress(nil, make([]byte, n), coding.Zstd)
		if err != nil {
			t.Fatal(err)
		}
		h := header(b)
		if h.WindowSize > maxWindow || h.SingleSegment && h.FrameContentSize > maxWindow {
			t.Errorf("%d bytes need a window of %d, single segment: %v", n, h.WindowSize, h.SingleSegment)
		}
		if !h.HasFCS || h.FrameContentSize != uint64(n) {
			t.Errorf("the frame of %d bytes says %d", n, h.FrameContentSize)
		}
	}
	var b bytes.Buffer
	w := NewWriter(&b, coding.Zstd)
	w.Write(make([]byte, 2*maxWindow))
	w.Close()
	if h := header(b.Bytes()); h.WindowSize > maxWindow {
		t.Errorf("a stream needs a window of %d", h.WindowSize)
	}
}

func TestCompressUnknown(t *testing.T) {
	t.Parallel()
	if b, err := Compress([]byte("x"), []byte("y"), codings); err == nil || string(b) != "x" {
		t.Errorf("Compress in an unknown coding: %q, %v", b, err)
	}
}

// TestConcurrent: encoders are one goroutine's at a time.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 6 {
				c, src := coders[(i+j)%len(coders)], sample(3000+100*i+j)
				b, err := Compress(nil, src, c)
				if err != nil {
					t.Error(err)
				}
				var streamed bytes.Buffer
				w := NewWriter(&streamed, c)
				w.Write(src)
				if err := w.Close(); err != nil {
					t.Error(err)
				}
				for _, b := range [][]byte{b, streamed.Bytes()} {
					if back, err := decode(b, c); err != nil || !bytes.Equal(back, src) {
						t.Errorf("%v: not what went in: %v", c, err)
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestWriter(t *testing.T) {
	t.Parallel()
	for _, c := range append(coders, coding.Identity) {
		for name, pieces := range map[string][]int{
			"nothing":      nil,
			"empty":        {0, 0},
			"one":          {1},
			"whole":        {100_000},
			"many":         {1, 10, 100, 1000, 10_000, 0, 70_000},
			"over windows": {300_000, 300_000, 300_000},
		} {
			t.Run(c.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				var out, in bytes.Buffer
				w := NewWriter(&out, c)
				for _, n := range pieces {
					b := sample(n)
					in.Write(b)
					if m, err := w.Write(b); m != n || err != nil {
						t.Fatalf("Write of %d: %d, %v", n, m, err)
					}
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				if c != coding.Identity && out.Len() == 0 {
					t.Error("empty content must differ from a missing response")
				}
				if back, err := decode(out.Bytes(), c); err != nil || !bytes.Equal(back, in.Bytes()) {
					t.Errorf("decodes to %d bytes, %v; want %d", len(back), err, in.Len())
				}
			})
		}
	}
}

// TestFlush: what was written before a flush can be read before there is more.
func TestFlush(t *testing.T) {
	t.Parallel()
	for _, c := range coders {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			pr, pw := io.Pipe()
			defer pr.Close() // which ends the writer, if it still writes
			go func() {
				w := NewWriter(pw, c)
				for i := range 50 {
					fmt.Fprintf(w, "event %d\n", i)
					w.Flush()
				}
				// Neither closed nor ended: the reader must not need it.
			}()
			var r io.Reader
			switch c {
			case coding.Gzip:
				z, err := stdgzip.NewReader(pr)
				if err != nil {
					t.Fatal(err)
				}
				r = z
			case coding.Brotli:
				r = brotli.NewReader(pr)
			case coding.Zstd:
				z, err := zstd.NewReader(pr, zstd.WithDecoderConcurrency(1))
				if err != nil {
					t.Fatal(err)
				}
				defer z.Close()
				r = z
			}
			for i := range 50 {
				want := fmt.Sprintf("event %d\n", i)
				got := make([]byte, len(want))
				if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
					t.Fatalf("%q, %v; want %q", got, err, want)
				}
			}
		})
	}
}

// brittle fails after some bytes.
type brittle struct{ left int }

var errBroken = errors.New("broken")

func (b *brittle) Write(p []byte) (int, error) {
	if len(p) > b.left {
		return 0, errBroken
	}
	b.left -= len(p)
	return len(p), nil
}

func TestWriterErrors(t *testing.T) {
	t.Parallel()
	for _, c := range append(coders, coding.Identity) {
		for _, left := range []int{0, 5, 500} {
			w := NewWriter(&brittle{left}, c)
			var err error
			for range 100 {
				if _, err = w.Write(noise(10_000)); err != nil {
					break
				}
			}
			if !errors.Is(err, errBroken) {
				t.Errorf("%v, %d: Write: %v", c, left, err)
			}
			if _, again := w.Write([]byte("x")); !errors.Is(again, errBroken) {
				t.Errorf("%v, %d: the error does not stay: %v", c, left, again)
			}
			if err := w.Flush(); !errors.Is(err, errBroken) {
				t.Errorf("%v, %d: Flush: %v", c, left, err)
			}
			if err := w.Close(); !errors.Is(err, errBroken) {
				t.Errorf("%v, %d: Close: %v", c, left, err)
			}
			// The encoder that saw the failure serves others.
			var out bytes.Buffer
			good := NewWriter(&out, c)
			good.Write([]byte("well"))
			good.Close()
			if back, err := decode(out.Bytes(), c); err != nil || string(back) != "well" {
				t.Errorf("%v, %d: afterwards: %q, %v", c, left, back, err)
			}
		}
		// A failure that only the end brings.
		w := NewWriter(&brittle{0}, c)
		if c != coding.Identity {
			if err := w.Close(); !errors.Is(err, errBroken) {
				t.Errorf("%v: Close alone: %v", c, err)
			}
		}
	}
}

func TestWriterClosed(t *testing.T) {
	t.Parallel()
	for _, c := range append(coders, coding.Identity) {
		var out bytes.Buffer
		w := NewWriter(&out, c)
		w.Close()
		n := out.Len()
		if _, err := w.Write([]byte("x")); err != ErrClosed {
			t.Errorf("%v: Write after Close: %v", c, err)
		}
		if err := w.Flush(); err != ErrClosed {
			t.Errorf("%v: Flush after Close: %v", c, err)
		}
		if err := w.Close(); err != nil {
			t.Errorf("%v: second Close: %v", c, err)
		}
		if out.Len() != n {
			t.Errorf("%v: something was written after Close", c)
		}
	}
	w := NewWriter(io.Discard, codings)
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("a Writer of an unknown coding writes")
	}
	if err := w.Close(); err == nil {
		t.Error("a Writer of an unknown coding closes without an error")
	}
}

// TestAbandoned: encoders hold no goroutines, so a Writer that is not closed
// leaks none. Not parallel: it counts.
func TestAbandoned(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, c := range coders {
		for range 10 {
			NewWriter(io.Discard, c).Write(sample(100_000))
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

// TestPieces feeds contents in pieces, with flushes between. Not a fuzz target:
// what pooled encoders do differs from run to run, so that the fuzzer takes
// everything for new.
func TestPieces(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 3))
	for i := range 200 {
		c, src := coders[i%len(coders)], sample(rnd.IntN(20_000))
		if i%10 == 0 {
			src = noise(len(src))
		}
		var out bytes.Buffer
		w := NewWriter(&out, c)
		for rest := src; len(rest) > 0; {
			n := min(1+rnd.IntN(3000), len(rest))
			w.Write(rest[:n])
			rest = rest[n:]
			if rnd.IntN(3) == 0 {
				w.Flush()
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if back, err := decode(out.Bytes(), c); err != nil || !bytes.Equal(back, src) {
			t.Fatalf("%v, run %d: decodes to %d bytes, %v; want %d", c, i, len(back), err, len(src))
		}
	}
}

// TestAgain: the same content gives the same bytes, whatever an encoder did
// before, including its first content. Entity tags are made of these bytes, and
// must not change with every eviction, nor from one server to the next. The
// encoders are not the pools', so that each run has the same history.
func TestAgain(t *testing.T) {
	t.Parallel()
	contents := map[effort][][]byte{
		keep: {sample(50_000), make([]byte, keepMax-1), noise(200_000), sample(100), nil, sample(3000)},
		bulk: {sample(keepMax), make([]byte, keepMax+5000), noise(keepMax + 1)},
	}
	for _, c := range coders {
		for e, all := range contents {
			t.Run(fmt.Sprintf("%v/%d", c, e), func(t *testing.T) {
				t.Parallel()
				again(t, c, e, all)
			})
		}
	}
}

func again(t *testing.T, c coding.Coding, e effort, all [][]byte) {
	fresh := make([][]byte, len(all))
	for i, src := range all {
		fresh[i] = mustCompress(t, makers[c][e](), src)
	}
	for first := range all {
		if race.Enabled && first > 0 {
			break // one goroutine has nothing to show it
		}
		enc := makers[c][e]()
		for k := range len(all) {
			i := (first + k) % len(all)
			if again := mustCompress(t, enc, all[i]); !bytes.Equal(fresh[i], again) {
				t.Errorf("content %d: an encoder whose first was %d makes other %d bytes of it than the %d of a new one", i, first, len(again), len(fresh[i]))
			}
		}
	}
	// What Compress takes is one of them.
	for i, src := range all {
		if got, err := Compress(nil, src, c); err != nil || !bytes.Equal(got, fresh[i]) {
			t.Errorf("content %d: Compress makes other %d bytes of it than the %d of a new encoder; %v", i, len(got), len(fresh[i]), err)
		}
	}
}

func mustCompress(t *testing.T, enc encoder, src []byte) []byte {
	t.Helper()
	out, err := compress(enc, nil, src)
	if err != nil {
		t.Fatal(err)
	}
	enc.Reset(nil)
	return out
}

func BenchmarkCompress(b *testing.B) {
	src := sample(100_000)
	for _, c := range coders {
		b.Run(c.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(src)))
			var dst []byte
			for b.Loop() {
				dst, _ = Compress(dst[:0], src, c)
			}
			b.ReportMetric(float64(len(dst))/float64(len(src)), "ratio")
		})
	}
}

func BenchmarkWriter(b *testing.B) {
	src := sample(20_000)
	for _, c := range coders {
		b.Run(c.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				w := NewWriter(io.Discard, c)
				w.Write(src)
				w.Close()
			}
		})
	}
}
