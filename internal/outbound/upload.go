package outbound

import (
	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/reason"
)

// This file sends a body as it comes from the client. As long as all of it that was sent is kept, in
// Exchange.out and in its framing, the request can be sent again.
//
// The client's connection is read only as far as the server's has room, so what waits is in the sockets.

// upload is what an Exchange knows of a body that had not arrived when it began.
type upload struct {
	keep    int  // how many bytes more are kept
	open    bool // more of it is to come
	chunked bool
	asks    bool // it is sent after a 100, or continueWait
	crlf    bool // of a chunk whose data was sent
	stopped bool // the server of the latest try gets no more of it
}

// continueWait is how long a body waits for a 100: servers that do not know Expect never send one (RFC
// 9110 section 10.1.1).
const continueWait = int64(1e9)

// joinUpload is the largest part of a body that is copied after its chunk's size.
const joinUpload = 4 << 10

// Room reports whether Upload may be called. If not, Client.Room follows, or the end.
func (x *Exchange) Room() bool {
	c := x.conn
	return x.up.stopped || c != nil && c.up && !c.asks && !c.out.Out().Blocked()
}

// Stopped reports whether no server gets more of the body: Upload drops it. What is kept may be sent to another one,
// whole.
func (x *Exchange) Stopped() bool { return x.up.stopped && x.out == nil }

// Hold adds the first part of the body, before Run. It is sent with the head. whole: there is no more.
func (x *Exchange) Hold(p []byte, whole bool) {
	x.up.open = !whole
	x.keep(p, nil)
}

// Upload sends the next part of the body. The memory beyond p is free, up to its capacity.
func (x *Exchange) Upload(p []byte) {
	if x.Stopped() || len(p) == 0 {
		return
	}
	if !x.up.chunked {
		x.send(nil, p)
		return
	}
	var line [24]byte
	size := http1.AppendChunkSize(x.endChunk(line[:0]), len(p))
	if len(p) <= joinUpload {
		b := buf.Get(len(size) + len(p) + 2)
		b.B = append(append(append(b.B[:0], size...), p...), "\r\n"...)
		x.send(b.B, nil)
		b.Release()
		return
	}
	if x.up.crlf = cap(p)-len(p) < 2; !x.up.crlf {
		// There is no room if the client's chunk has not ended: then more of it follows.
		p = append(p, "\r\n"...)
	}
	x.send(size, p)
}

func (x *Exchange) endChunk(b []byte) []byte {
	if x.up.crlf {
		x.up.crlf = false
		b = append(b, "\r\n"...)
	}
	return b
}

// UploadEnd ends the body. trailer is the section after its last chunk, with the empty line.
func (x *Exchange) UploadEnd(trailer []byte) {
	x.up.open = false
	if x.Stopped() {
		return
	}
	if x.up.chunked {
		x.send(append(append(x.endChunk(nil), "0\r\n"...), trailer...), nil)
	}
	c := x.conn
	switch {
	case c == nil || x.up.stopped:
	case c.inBody:
		c.limit()
		c.out.Sent()
		c.out.Resume() // nothing limits it if it is the client that is waited for
	default:
		c.out.SetDeadline(after(x.loop.Now(), c.terms.Response))
		c.out.Sent()
	}
}

// keep keeps what is sent, if there is room.
func (x *Exchange) keep(a, b []byte) {
	if x.out == nil {
		return
	}
	if x.up.keep -= len(a) + len(b); x.up.keep < 0 {
		x.out = x.out.Drop()
		x.route.Gone()
		return
	}
	x.out = x.out.Grow(len(a) + len(b))
	x.out.B = append(append(x.out.B, a...), b...)
}

// send sends a and b on the connection of the latest try.
func (x *Exchange) send(a, b []byte) {
	x.keep(a, b)
	if x.up.stopped { // it is for another try
		return
	}
	c := x.conn
	if err := c.out.Send(&conn.Write{A: a, B: b}); err != nil {
		// The server reads no more. What it has said of that may still arrive.
		x.stop()
		c.out.SetDeadline(after(x.loop.Now(), c.terms.Response))
		c.out.Hear(err)
		return
	}
	if c.out.Out().Blocked() {
		c.out.Sent()
	}
}

// stop sends no more of the body.
func (x *Exchange) stop() {
	x.up.stopped = true
	x.client.Room()
}

// Spoil ends an exchange whose client has not sent its body as announced. Client.Fail follows.
func (x *Exchange) Spoil(status int, why string) {
	x.part()
	if x.answered {
		x.end(reason.ClientGone)
		x.client.Fail(reason.ClientGone)
		return
	}
	x.out = x.out.Drop()
	x.route.Spoilt(status, why)
	x.client.Fail(reason.None)
}
