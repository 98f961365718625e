package encode

import (
	"github.com/chert-http/chert/internal/rfc/coding"
	"github.com/klauspost/compress/zstd"
)

// Compress appends src in coding c to dst and returns the extended slice, which
// may have capacity to spare. It is for results that are kept: it takes 5 to 15 ms
// for a MiB of text, and for content made to be slow at worst about 130 ms for a
// MiB and 30 ms for each MiB beyond that; up to 14 MiB of memory while it runs.
// Within one version of a program the same src gives the same bytes, whatever was
// compressed before. The error is nil for all defined codings. Safe for concurrent
// use.
func Compress(dst, src []byte, c coding.Coding) ([]byte, error) {
	switch {
	case c == coding.Identity:
		return append(dst, src...), nil
	case c >= codings:
		return dst, errUnknown
	}
	e := keep
	if len(src) >= keepMax {
		e = bulk
	}
	enc := take(c, e)
	out, err := compress(enc, dst, src)
	give(c, e, enc) // not deferred: one that panicked is not used again
	return out, err
}

// compress appends src to dst in enc's coding.
func compress(enc encoder, dst, src []byte) ([]byte, error) {
	if z, ok := enc.(*zstd.Encoder); ok {
		// Not through a writer: so the frame contains the length of the content,
		// and a decoder need not allocate a whole window for a short one.
		return z.EncodeAll(src, dst), nil
	}
	out := sink{dst}
	enc.Reset(&out)
	if _, err := enc.Write(src); err != nil {
		return dst, err
	}
	if err := enc.Close(); err != nil {
		return dst, err
	}
	return out.b, nil
}

// A sink appends what is written to it.
type sink struct{ b []byte }

func (s *sink) Write(p []byte) (int, error) {
	s.b = append(s.b, p...)
	return len(p), nil
}
