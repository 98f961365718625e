package h1

import (
	"net/http"
	"sync"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http1"
)

// This file writes a response's body and its end, and decides when to send. The
// head and small bodies are gathered in the wire buffer.

// wireSize is how many bytes are gathered before they are written.
const wireSize = 4 << 10

// writing is a response in progress and its buffers. It is pooled.
type writing struct {
	progress
	wireBuf  [wireSize]byte
	stageBuf [bridge.StageSize]byte
}

type progress struct {
	bridge.Progress
	// out is a head, then the bytes gathered before they are written: in
	// wireBuf, unless a head is larger.
	out   []byte
	head  head // what is in out between Head and Complete
	last  conn.Write
	lost  int64 // of the body, by Data that has failed
	begun bool  // something of it was passed to the Link
}

var writings = sync.Pool{New: func() any { return new(writing) }}

func (x *exchange) Begin() *bridge.Progress {
	w := writings.Get().(*writing)
	w.out, w.Staged = w.wireBuf[:0], w.stageBuf[:0]
	x.writing = w
	return &w.Progress
}

func (x *exchange) End() (held int64) {
	w := x.writing
	held = int64(len(w.out)) + w.lost
	w.progress, x.writing = progress{}, nil
	writings.Put(w)
	return held
}

func (x *exchange) Interim(status int, h http.Header) error {
	w := x.writing
	if x.minor == 0 {
		// RFC 9110 section 15.2: a server MUST NOT send a 1xx response to an
		// HTTP/1.0 client.
		return nil
	}
	if status == http.StatusContinue && h == nil {
		// The gathered bytes are a 101, which must follow the 100 (RFC 9110 section 7.8).
		w.last = conn.Write{A: goOn, Wait: conn.ForRoom}
		return x.s.Link.Send(&w.last)
	}
	w.out = http1.AppendStatusLine(w.out, 1, status)
	w.out = appendHeader(w.out, h, []string{"Content-Length", "Transfer-Encoding"})
	w.out = append(w.out, "\r\n"...)
	return x.Flush()
}

func (x *exchange) Data(p []byte) error {
	w := x.writing
	if !w.Chunked {
		return x.gather(p)
	}
	if len(w.out) > wireSize-32 {
		if err := x.Flush(); err != nil {
			w.lost += int64(len(p))
			return err
		}
	}
	w.out = http1.AppendChunkSize(w.out, len(p))
	err := x.gather(p)
	w.out = append(w.out, "\r\n"...)
	return err
}

// gather keeps p or, if p is large, writes it together with what was gathered.
func (x *exchange) gather(p []byte) error {
	w := x.writing
	// Leave two bytes for the CRLF of a chunk.
	if len(w.out)+len(p) <= wireSize-2 {
		w.out = append(w.out, p...)
		return nil
	}
	return x.pass(p)
}

// pass passes what was gathered and then p to the Link. When the handler has returned it does not wait for
// the client on a loop, and on a goroutine no client that reads when it has sent its body.
func (x *exchange) pass(p []byte) error {
	w := x.writing
	w.begun = true
	w.last = conn.Write{A: w.out, B: p}
	if w.out = w.out[:0]; x.Res.Done {
		w.last.DiscardInput = x.body != nil && x.skipsBody()
	} else {
		w.last.Wait = conn.ForRoom
	}
	return x.s.Link.Send(&w.last)
}

// skipsBody reports whether the Link is to discard what is left of the body that no handler
// will read, since no request can follow it. Otherwise it was read before the head: see
// drainBody.
func (x *exchange) skipsBody() bool { return x.Res.CloseAfter.Load() && x.body.Unfinished() }

func (x *exchange) Flush() error {
	if len(x.writing.out) == 0 {
		return nil
	}
	return x.pass(nil)
}

func (x *exchange) Release() { x.s.release() }

// aside calls f, which may wait for the client for the server's own reasons, without the slot.
func (x *exchange) aside(f func()) {
	s := x.s
	waits := x.body.chunked || x.body.Left > int64(len(s.Link.Buffered()))
	slotted := waits && s.release()
	if f(); slotted {
		s.Link.Lent().Yield()
		s.Slots.Rejoin()
		s.facts.Or(slot)
	}
}

func (x *exchange) Finish(h http.Header, short bool) conn.Next {
	w := x.writing
	if w.Chunked && !x.IsHEAD {
		// The last chunk and the trailer section.
		w.out = append(w.out, "0\r\n"...)
		t := w.TrailersOf(h, func(string) bool { return true })
		w.out = append(appendHeader(w.out, t, nil), "\r\n"...)
	}
	if w.Err == nil && len(w.out) > 0 {
		w.last = conn.Write{A: w.out, Cork: x.more, DiscardInput: x.body != nil && x.skipsBody()}
		w.out = w.out[:0]
		w.Err = x.s.Link.Send(&w.last)
		x.unsent = w.Err != nil && !w.begun
	}
	switch {
	case w.Err != nil:
		return bridge.Failure(w.Err)
	case x.Res.CloseAfter.Load() || short:
		// RFC 9112 section 8: the client relies on Content-Length; only closing
		// the connection tells it that the body is incomplete.
		return conn.Close
	}
	return conn.More
}
