package bridge

import (
	"net/http"
	"strconv"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/takeover"
)

// This file lets requests wait for their answers after their handlers.

// Returner is a Message whose session continues after the response.
type Returner interface{ Session() conn.Session }

// Hold implements takeover.Streamer.
func (w *Response) Hold(begin func(answer func(p []byte)) takeover.Source) error {
	m, ok := w.x.m.(Returner)
	if !ok { // it shares its connection
		return w.Outlive(func(s takeover.Stream, _ bool) takeover.Source {
			return begin(func(p []byte) {
				s.Offer(p, len(p), -1)
				s.End(false)
			})
		})
	}
	return w.passOn(http.StatusOK, false, func(c *Client) *Ending {
		h := &held{c: c, back: m.Session(), chunked: w.Chunked, last: w.CloseAfter.Load()}
		// What is left of the body is not the next request (RFC 9112 section 6.3).
		h.unread = w.x.Body != nil && !w.x.Body.sawEOF
		h.source = begin(h.answer)
		w.x.seldom().taken = h
		return &h.Ending
	})
}

// held is a request that waits for its answer: the conn.Session meanwhile.
type held struct {
	conn.Quiet
	Ending
	c       *Client
	source  takeover.Source
	back    conn.Session // which has the connection afterwards
	chunked bool
	last    bool // the connection is not kept
	unread  bool // nor is it if the handler has not read the whole body
	sent    bool // the answer, or at least the Link has it
}

var _ conn.Speaker = (*held)(nil)

func (h *held) Speaks() string { return "HTTP/1" }

// Data and the following implement conn.Session. What the client sends meanwhile is
// for the session afterwards.
func (h *held) Data(eof bool) conn.Next {
	h.c.Link.SetDeadline(0) // HTTP/1's
	if eof || len(h.c.Link.Buffered()) > maxJunk {
		return conn.Close
	}
	return conn.More
}

func (h *held) Since(now int64) int64 { return now } // it is not idle

func (h *held) Drain(int64) conn.Next { return h.c.drain(h.source) }

func (h *held) Closed(bool) {
	h.source.Closed()
	h.Over(h.c, 0, false) // unless the answer has been sent
	h.c.SetState(http.StateClosed)
}

func (h *held) Sent(lost int64) { h.Over(h.c, lost, true) }

// answer sends the body and gives the connection back.
func (h *held) answer(p []byte) {
	h.c.Link.Post(func() conn.Next {
		if h.sent {
			return conn.More
		}
		h.sent = true
		w := conn.Write{A: p}
		if h.chunked {
			const end = "0\r\n\r\n"
			b := make([]byte, 0, len(p)+32)
			if len(p) > 0 {
				b = append(strconv.AppendInt(b, int64(len(p)), 16), "\r\n"...)
				b = append(append(b, p...), "\r\n"...)
			}
			w.A = append(b, end...)
		}
		if err := h.c.Link.Send(&w); err != nil {
			return Failure(err)
		}
		h.Given(len(p))
		if waiting, _ := h.c.Link.Out().Unsent(); waiting > 0 {
			h.c.Link.Out().Follow(h)
		} else {
			h.Over(h.c, 0, true)
		}
		if h.unread {
			return conn.Linger
		}
		if h.last || !h.c.KeepsIdle() {
			return conn.Close
		}
		h.source.Closed()
		h.c.SetState(http.StateIdle)
		h.c.Link.Switch(h.back)
		return conn.Requeue
	})
}
