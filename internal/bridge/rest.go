package bridge

import (
	"io"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/conn"
)

// This file is how a direct answer is written: head, bytes and a part of a
// file, as the socket takes them.

// rest is what of a direct answer is still to be written.
type rest struct {
	head, body []byte
	file       direct.File // its Offset and Len are of what is left
	verdict    conn.Verdict
	begun      bool // something has been written
	copying    bool // of the file, since it cannot be sent otherwise
	buf        []byte
}

// drop ends the use of the file.
func (r *rest) drop() {
	done := r.file.Done
	*r = rest{}
	if done != nil {
		done()
	}
}

// beginDirect makes the answer p.rest.
func (c *Conn) beginDirect(p *parsed) {
	if d := c.cfg.WriteTimeout; d > 0 {
		c.t.SetWriteDeadline(time.Now().Add(d))
	}
	a := p.x.Finish()
	r := &p.rest
	r.verdict = conn.More
	out := p.out[:0]
	if a.Ready != nil {
		out = append(out, a.Ready.Head(encodeAnswer)...)
	} else {
		out = appendAnswer(out, a.Status, a.Fields)
	}
	if !a.HasDate {
		out = appendDate(out, c.t.Now())
	}
	if !p.head.KeepAlive || !c.cfg.KeepAlives() {
		out = append(out, "Connection: close\r\n"...)
		r.verdict = conn.Close
	}
	out = append(out, "\r\n"...)
	if len(a.Body) <= wireSize {
		out = append(out, a.Body...)
		a.Body = nil
	}
	p.out = out
	r.head, r.body, r.file = out, a.Body, a.File
}

// sendRest writes what the socket takes of p.rest.
func (c *Conn) sendRest(p *parsed) conn.Verdict {
	r := &p.rest
	for {
		if r.begun && r.file.Len > 0 && r.file.Check != nil && r.file.Check() != nil {
			return conn.Close
		}
		r.begun = true
		if err := c.sendBytes(r); err != nil {
			return failure(err)
		}
		switch {
		case len(r.head)+len(r.body) > 0:
			return conn.Stalled
		case r.file.Len == 0:
			return r.verdict
		}
		if r.copying {
			if err := r.fill(); err != nil {
				return conn.Close
			}
			continue
		}
		n := r.file.Len
		if !c.onLoop {
			n = min(n, filePiece) // it waits for the client in there
		}
		sent, ok, err := c.t.TrySendFile(r.file.File, r.file.Offset, n)
		r.file.Offset += sent
		r.file.Len -= sent
		switch {
		case err != nil:
			return failure(err)
		case !ok:
			r.copying = true
		case sent < n:
			return conn.Stalled
		}
	}
}

// sendBytes writes what the socket takes of the head and the body.
func (c *Conn) sendBytes(r *rest) error {
	if len(r.head)+len(r.body) == 0 {
		return nil
	}
	n, err := c.t.TryWrite(r.head, r.body, r.file.Len > 0)
	if n >= len(r.head) {
		r.head, r.body = nil, r.body[n-len(r.head):]
	} else {
		r.head = r.head[n:]
	}
	return err
}

// fill makes the next piece of the file the body.
func (r *rest) fill() error {
	if r.buf == nil {
		r.buf = make([]byte, copySize)
	}
	n, err := r.file.File.ReadAt(r.buf[:min(r.file.Len, copySize)], r.file.Offset)
	if n == 0 {
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	r.body = r.buf[:n]
	r.file.Offset += int64(n)
	r.file.Len -= int64(n)
	return nil
}

// filePiece is how much of a file is sent between two of its checks where the
// sender waits for the client, in bytes.
const filePiece = 1 << 20

// SendFile implements direct.FileSender.
func (w *response) SendFile(f direct.File) error {
	if f.Len > smallFile && !w.headSent() {
		// As in ReadFrom: the first bytes decide the Content-Type.
		n, err := copyTo(upToLength{w}, io.NewSectionReader(f.File, f.Offset, sniffLen), sniffLen)
		f.Offset += n
		f.Len -= n
		if err != nil {
			return err
		}
	}
	for begun := false; f.Len > 0; begun = true {
		if begun && f.Check != nil {
			if err := f.Check(); err != nil {
				return err
			}
		}
		if f.Len <= smallFile {
			break
		}
		n, err := w.beginDirect(min(f.Len, filePiece))
		if err != nil || n <= 0 {
			break // CopyTo finds out why
		}
		ok := false
		sent, err := w.passBy(n, func(t conn.Transport) (sent int64, err error) {
			sent, ok, err = t.SendFile(f.File, f.Offset, n)
			return sent, err
		})
		if !ok && err == nil {
			break
		}
		if err == nil && sent < n {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		f.Offset += sent
		f.Len -= sent
	}
	return f.CopyTo(upToLength{w})
}
