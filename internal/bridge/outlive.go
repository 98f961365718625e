package bridge

import (
	"net"
	"net/http"
	"sync/atomic"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/takeover"
	"github.com/chert-http/chert/internal/tally"
)

// This file lets responses outlive their handlers.

// Outlive implements takeover.Streamer. Where the response has the connection to itself,
// that ends with it: a client that waits for events sends no further requests.
func (w *Response) Outlive(begin func(s takeover.Stream, chunked bool) takeover.Source) error {
	m, shared := w.x.m.(Sharer)
	if !shared {
		w.CloseAfter.Store(true)
	}
	return w.passOn(http.StatusOK, false, func(c *Client) *Ending {
		if shared {
			return m.Last(func(s takeover.Stream) takeover.Source { return begin(s, false) })
		}
		c.Link.Share()
		l := &lasting{c: c}
		l.source = begin(l, w.Chunked)
		w.x.seldom().taken = l
		l.count(true)
		return &l.Ending
	})
}

// Shed drops the fields of the request and of the response after a handler has returned
// that has called Outlive: they may be larger than all else that the response keeps.
func (x *Exchange) Shed() {
	x.Req.Header, x.Req.Trailer, x.Req.Form, x.Req.PostForm, x.Req.MultipartForm = nil, nil, nil, nil, nil
	x.Res.mu.Lock()
	defer x.Res.mu.Unlock()
	x.Res.header = nil
}

// lasting is a response that has outlived its handler, on a connection of its own: the
// takeover.Stream of the Source, and the conn.Session of the Link.
type lasting struct {
	conn.Quiet // it does not give way
	Ending
	c      *Client
	source takeover.Source
	junk   int
	ended  atomic.Bool // by End, as a whole
}

var _ conn.Speaker = (*lasting)(nil)

func (l *lasting) count(begun bool) {
	l.c.Count(tally.EventStreamsBegun, begun)
	l.c.Count(tally.TakenBegun, begun)
}

func (l *lasting) Speaks() string { return "event stream" }

// maxJunk bounds what a client may send during such a response, in bytes. It has been
// told that the connection ends after it.
const maxJunk = 64 << 10

// Data and the following implement conn.Session.
func (l *lasting) Data(eof bool) conn.Next {
	l.c.Link.SetDeadline(0) // HTTP/1's
	n := len(l.c.Link.Buffered())
	l.c.Link.Discard(n)
	l.junk += n
	switch {
	case eof:
		return conn.Close // the client has gone, as net/http understands it
	case l.junk > maxJunk:
		return conn.Linger
	}
	return conn.More
}

func (l *lasting) Writable() conn.Next {
	l.source.Writable()
	return conn.More
}

func (l *lasting) Drain(int64) conn.Next { return l.c.drain(l.source) }

func (c *Client) drain(s takeover.Source) conn.Next {
	if c.Ending() {
		s.Stop()
	}
	return conn.More
}

func (l *lasting) Closed(bool) {
	l.count(false)
	l.source.Closed()
	_, lost := l.c.Link.Out().Unsent()
	l.Over(l.c, lost, l.ended.Load())
	l.c.SetState(http.StateClosed)
}

// Offer and the following implement takeover.Stream.
func (l *lasting) Offer(p []byte, body, limit int) (much bool, err error) {
	if much, err = l.c.Link.Out().Offer(p, nil, limit); err == nil {
		l.Given(body)
	}
	return much, err
}

func (l *lasting) End(abort bool) {
	next := conn.Close
	if abort {
		next = conn.Reset
	}
	l.ended.Store(!abort)
	l.c.Link.Post(func() conn.Next { return next })
}

func (l *lasting) RemoteAddr() net.Addr { return l.c.RemoteAddr() }
