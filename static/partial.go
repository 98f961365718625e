package static

import (
	"bytes"
	"io"
	"net/http"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/rfc/ranges"
)

// This file sends parts of content (RFC 9110 section 14).

// partial answers with the ranges that value requests, and ends e's use.
func (h *Handler) partial(x *direct.Exchange, e *entry, p *plain, value []byte) error {
	var buf [1]ranges.Range
	list, outcome := ranges.Parse(buf[:0], value, e.size())
	switch {
	case outcome == ranges.Unsatisfiable:
		h.unsatisfiable(x, e)
		e.release()
		return nil
	case outcome == ranges.Whole:
		if e.ok != nil {
			x.Send(e.ok)
			return nil
		}
		return h.sendFile(x, e, p, nil)
	case len(list) > 1:
		return h.several(x, e, p, list)
	}
	r := list[0]
	if e.ok != nil {
		e.setFields(x)
		setPart(x, r, e.size())
		x.Write(e.body[r.Start : r.Start+r.Length])
		return nil
	}
	return h.sendFile(x, e, p, &r)
}

func setPart(x *direct.Exchange, r ranges.Range, size int64) {
	x.SetStatus(http.StatusPartialContent)
	x.AddHeader("Content-Range", r.ContentRange(size))
}

// several answers with a multipart body, which is written as it is generated.
func (h *Handler) several(x *direct.Exchange, e *entry, p *plain, list []ranges.Range) error {
	if p == nil {
		e.release()
		return errLater
	}
	r := io.ReaderAt(e.file)
	if e.ok != nil {
		r = bytes.NewReader(e.body)
	} else if e.file == nil {
		f, err := h.openSame(e)
		if err != nil {
			return err
		}
		p.file, r = f, readerAt(f)
	}
	m := &ranges.Multipart{Boundary: ranges.NewBoundary(), ContentType: e.field("Content-Type"), Ranges: list,
		Size: e.size()}
	e.setFields(x)
	x.SetStatus(http.StatusPartialContent)
	x.SetHeader("Content-Type", m.Type())
	p.stream = func(w http.ResponseWriter) error { return writeParts(w, m, r, e) }
	x.SendFile(direct.File{File: unopened, Len: m.Len(), Done: e.done})
	return nil
}

// writeParts writes a multipart body whose parts are in r.
func writeParts(w http.ResponseWriter, m *ranges.Multipart, r io.ReaderAt, e *entry) error {
	var b []byte
	for i, part := range m.Ranges {
		b = m.AppendHead(b[:0], i)
		if _, err := w.Write(b); err != nil {
			return err
		}
		if err := writePart(w, part, r, e); err != nil {
			return err
		}
	}
	_, err := w.Write(m.AppendTail(b[:0]))
	return err
}

func writePart(w http.ResponseWriter, part ranges.Range, r io.ReaderAt, e *entry) error {
	if e.file == nil {
		return copyExactly(w, io.NewSectionReader(r, part.Start, part.Length), part.Length)
	}
	if err := e.check(); err != nil {
		return err
	}
	return wire.SendFile(w, direct.File{File: e.file, Offset: part.Start, Len: part.Length, Check: e.check})
}
