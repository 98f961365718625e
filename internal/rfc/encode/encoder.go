package encode

import (
	"errors"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/chert-http/chert/internal/rfc/coding"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// An encoder is what the three libraries have in common.
type encoder interface {
	io.WriteCloser
	Flush() error
	Reset(w io.Writer)
}

// Effort depends on the use of the result. Measured through these makers on one
// quiet core (a busy one took up to three times as long): the size of the
// result and the time for a MiB of scripts, styles and pages (jQuery UI, React,
// GitHub, the Rust documentation; 2.2 MiB in all); the time for a MiB of the
// slowest of eight contents made to be slow (two letters at random, DNA, digits
// and such); the memory of an encoder with window.
//
//	keep  gzip 8            14.7 %   10 ms    130 ms   1.0 MiB
//	      br 6, 1 MiB       12.8 %   16 ms     80 ms   7 MiB
//	      zstd better       14.2 %    4 ms     20 ms   6.5 MiB
//	bulk  gzip 6            15.4 %    5 ms     10 ms   1.0 MiB
//	      br 4, 4 MiB       14.3 %   10 ms     30 ms   12 MiB
//	      zstd better       14.2 %    4 ms     20 ms   14 MiB
//
// There are as many encoders of effort live as responses being sent, also to
// clients that do not read, so their parameters are chosen for memory first.
// Measured with 1 MiB of hexadecimal noise written to each; the size of the
// result for pages of 30 kB (the source of net/http) and for 1 MiB of JSON; the
// time for a MiB of that source, on a core shared with others:
//
//	live  gzip 6            29.5 %  16.7 %   10 ms   1.03 MiB
//	      br 3, 64 KiB      30.5 %  16.7 %   18 ms   0.68 MiB
//	      zstd fastest      33.1 %  16.2 %    5 ms   0.72 MiB
//
// br 4 with 256 KiB takes 1.5 MiB, and 6 MiB where the first piece is large: a
// larger table then, for a result of 31.9 and 16.2 %. zstd default takes 2.3 MiB
// for 31.1 and 16.9 %. No level of gzip takes less than 0.8 MiB.
//
// The next better levels cost too much: gzip 9 takes seconds for a MiB of two
// letters, zstd best takes 37 MiB of memory and some ten times as long at worst,
// br 7 gains a hundredth for a third of the time more.
type effort uint8

const (
	keep effort = iota // kept and sent often; less than keepMax bytes
	bulk               // kept, and so large that the worst case must be close to the usual one
	live               // made while it is sent, by many requests at the same time

	efforts
)

// keepMax bounds what effort keep is spent on, in bytes: at worst some 130 ms. It
// is also where brotli changes the kind of its table, which an encoder chooses by
// its first content and keeps through Reset: an encoder used on both sides of it
// would produce different bytes from the same content than a new one.
const keepMax = 1 << 20

// maxWindow is the largest window that a decoder of content coding zstd must
// support, in bytes (RFC 9659 section 3).
const maxWindow = 8 << 20

// A maker makes an encoder, which writes nowhere until it is reset.
type maker func() encoder

// codings is how many there are.
const codings = coding.Zstd + 1

var makers = [codings][efforts]maker{
	coding.Gzip:   {keep: newGzip(8), bulk: newGzip(6), live: newGzip(6)},
	coding.Brotli: {keep: newBrotli(6, 20), bulk: newBrotli(4, 22), live: newBrotli(3, 16)},
	coding.Zstd: {
		keep: newZstd(zstd.SpeedBetterCompression, keepMax),
		bulk: newZstd(zstd.SpeedBetterCompression, maxWindow),
		live: newZstd(zstd.SpeedFastest, 128<<10),
	},
}

func newGzip(level int) maker {
	return func() encoder {
		e, err := gzip.NewWriterLevel(io.Discard, level)
		if err != nil {
			panic(err) // the level is one of the table's
		}
		return e
	}
}

func newBrotli(quality, windowBits int) maker {
	return func() encoder {
		return brotli.NewWriterOptions(io.Discard, brotli.WriterOptions{Quality: quality, LGWin: windowBits})
	}
}

func newZstd(level zstd.EncoderLevel, window int) maker {
	return func() encoder {
		e, err := zstd.NewWriter(nil,
			zstd.WithEncoderLevel(level),
			// The window is set whatever the level, because that of the better
			// ones exceeds what browsers support.
			zstd.WithWindowSize(window),
			zstd.WithLowerEncoderMem(true),
			zstd.WithEncoderConcurrency(1), // no goroutines
			zstd.WithZeroFrames(true),      // empty content is a frame too, to distinguish it from a truncated response
		)
		if err != nil {
			panic(err) // the options are the table's
		}
		return e
	}
}

// pools keep encoders that are not at work. The second garbage collection that
// finds an encoder idle frees it.
var pools [codings][efforts]sync.Pool

func take(c coding.Coding, e effort) encoder {
	if enc, ok := pools[c][e].Get().(encoder); ok {
		return enc
	}
	return makers[c][e]()
}

// give returns enc to its pool. It must not retain what it wrote to.
func give(c coding.Coding, e effort, enc encoder) {
	enc.Reset(nil)
	pools[c][e].Put(enc)
}

// errUnknown is for a Coding that is none of the constants.
var errUnknown = errors.New("encode: unknown content coding")
