package h1

import (
	"net/http"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/forward"
)

// This file passes the body of a request that is forwarded on, as it comes from the client.

// Duplex implements conn.Duplex: the body is read although the client does not read the response.
func (f *forwarded) Duplex() bool { return f.in.open }

func (f *forwarded) Room() { f.link.Resume() }

// pump passes on what has come of the body, and returns what is to happen next.
func (f *forwarded) pump() conn.Next {
	for f.in.open {
		if !f.x.Room() {
			f.link.SetDeadline(f.deadline) // it is the server that is waited for
			return conn.Await
		}
		if f.expects {
			f.expects = false
			if f.status == 0 && !f.x.Stopped() && f.link.Send(&conn.Write{A: goOn}) != nil {
				f.gone()
				return conn.Reset
			}
		}
		b := f.link.Buffered()
		data, used, fields, err := f.in.next(b, &f.s.cfg.Head)
		f.x.Upload(data)
		switch {
		case err != nil:
			return f.spoil(http.StatusBadRequest, "request body malformed")
		case used == 0:
			return f.awaitBody()
		}
		var trailer []byte
		if f.in.tail && !f.in.open {
			trailer = forward.AppendTrailer(nil, b, fields)
		}
		if f.link.Discard(used); !f.in.open {
			f.x.UploadEnd(trailer)
		}
	}
	f.link.SetDeadline(f.deadline)
	return f.reading()
}

var goOn = []byte("HTTP/1.1 100 Continue\r\n\r\n")

// awaitBody waits for more of the body.
func (f *forwarded) awaitBody() conn.Next {
	by := conn.Earlier(f.deadline, f.readBy)
	if d := f.s.Shared.Limits.ReadStall; d > 0 {
		by = conn.Earlier(by, f.link.Now()+d)
	}
	f.link.SetDeadline(by)
	return conn.More
}

// spoil ends the exchange of a client that has not sent its body as announced: where the next request would begin
// is not known.
func (f *forwarded) spoil(status int, why string) conn.Next {
	f.head.Close, f.inside = true, true
	f.x.Spoil(status, why)
	f.inside = false
	return f.next
}
