//go:build linux

package sim

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxUpload is less than what a proxy reads and discards of a body after the response to it.
const maxUpload = 200 << 10

// kept is what a proxy keeps of a body at most, so that it can send it again.
const kept = 64 << 10

// upload is the body of a request, as its client sends it.
type upload struct {
	content  []byte
	end      int  // in all that the client sends; 0 as long as it is not known
	broken   bool // it is never whole
	complete bool // the client has sent its end
}

// uploads are those that a client has on its connection.
type uploads struct {
	open    []*upload
	leaves  bool    // the client is gone when it has sent what there is
	waiting *upload // it is in client.rest
}

// upload asks for a response to a body, which may be broken off.
func (c *proxyClient) upload() {
	a := asked{id: uint64(c.no)<<32 | c.next, kind: "proxy", method: "POST", size: c.size(), read: -1}
	if c.d.IntN(2) == 0 {
		a.method = "PUT"
	}
	n := c.size()
	if c.d.OneIn(16) {
		n = c.d.IntN(maxUpload)
	}
	n = min(n, maxUpload)
	up := &upload{content: body(a.id+1, n)}
	c.v.origins.uploads[a.id] = up
	b := fmt.Appendf(c.out, "%s /proxy/%d/%d HTTP/1.1\r\nHost: sim\r\n", a.method, a.id, a.size)
	head := len(b)
	c.out = c.post(b, up.content)
	if c.ups.open = append(c.ups.open, up); c.rest != nil {
		c.ups.waiting = up
	} else {
		up.end = c.sent + len(c.out)
	}
	if !c.calm && !c.stays && n > 0 && c.d.OneIn(20) {
		up.broken, c.closing = true, true
		if c.rest != nil {
			c.rest = c.spoilBody(c.rest)
		} else {
			from := head + bytes.Index(c.out[head:], []byte("\r\n\r\n")) + 4
			c.out = append(c.out[:from], c.spoilBody(c.out[from:])...)
		}
	}
	c.waiting = append(c.waiting, a)
}

// spoilBody makes a body one that is never whole, as clients do that are gone, stuck or wrong.
func (c *proxyClient) spoilBody(b []byte) []byte {
	if last := []byte("\r\n0\r\n\r\n"); c.d.OneIn(4) && bytes.HasSuffix(b, last) {
		c.note("malformed", 0, 0)
		c.excused = "garbage"
		return append(b[:len(b)-5:len(b)-5], "x\r\n"...)
	}
	b = b[:c.d.IntN(len(b))]
	switch c.d.IntN(3) {
	case 0:
		c.excused, c.ups.leaves = "gone", true
	case 1:
		c.excused, c.last = "half-closed", true
	default:
		c.excused = "stalled"
	}
	c.note(c.excused+" in a body after", len(b), 0)
	return b
}

// sending notes which bodies are sent, and leaves if that is what the client does.
func (c *proxyClient) sending() {
	if w := c.ups.waiting; w != nil && c.rest == nil {
		w.end, c.ups.waiting = c.sent+len(c.out), nil
	}
	for _, up := range c.ups.open {
		up.complete = up.complete || !up.broken && up.end > 0 && c.sent >= up.end
	}
	c.ups.open = slices.DeleteFunc(c.ups.open, func(up *upload) bool { return up.complete })
	if c.ups.leaves && c.s != nil && len(c.out) == 0 && c.rest == nil {
		c.leave()
		c.drop()
	}
	if c.s == nil {
		c.ups = uploads{}
	}
}

// refusedUpload reads the response of a server that does not want a body.
func (c *proxyClient) refusedUpload(head string, size int) (used int, err error) {
	a := c.waiting[0]
	if f := c.v.origins.got[a.id]; f == nil || !f.refused || !strings.Contains(head, "\r\nContent-Length: 0\r\n") {
		return 0, fmt.Errorf("%q for %+v, which got %+v", head, a, f)
	}
	c.closes(head)
	c.pop()
	c.done++
	c.answered++
	return size, nil
}

// arriving is a body as a server gets it.
type arriving struct {
	up      *upload
	chunked bool
	at      int // bytes of it that have come
	left    int // of a chunk, or of all
	ended   bool
	crlf    bool // the end of a chunk's data is to come
	last    bool // the trailer section is to come
	begin   int  // the response begins after so many bytes; -1: after all
	fails   int  // the server is gone or stuck after so many; -1: it is not
}

// startBody decides when a server responds to a body.
func (c *originConn) startBody(head string, id uint64) error {
	d, b := c.o.d, &arriving{up: c.o.uploads[id], begin: -1, fails: -1}
	if b.up == nil {
		return fmt.Errorf("there is no body")
	}
	if _, v, ok := strings.Cut(head, "\r\nContent-Length: "); ok {
		v, _, _ = strings.Cut(v, "\r\n")
		n, err := strconv.Atoi(v)
		if err != nil || n != len(b.up.content) {
			return fmt.Errorf("a body of %q bytes instead of %d", v, len(b.up.content))
		}
		b.left, b.ended = n, n == 0
	} else if b.chunked = strings.Contains(head, "\r\nTransfer-Encoding: chunked\r\n"); !b.chunked {
		return fmt.Errorf("a body without framing")
	}
	c.body = b
	switch n := len(b.up.content) + 1; {
	case d.OneIn(8):
		b.begin = d.IntN(n)
	case !c.o.v.calm && d.OneIn(20):
		b.fails = d.IntN(n)
	}
	if strings.Contains(head, "\r\nExpect: 100-continue\r\n") && b.begin != 0 && d.IntN(4) != 0 {
		c.s.Send([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	}
	return nil
}

// take reads what has come of a body, and decides what the server does then.
func (c *originConn) take() {
	b := c.body
	if err := b.read(&c.in); err != nil {
		c.o.v.wrong(fmt.Errorf("a server got a body that is %w, after %d of %d bytes", err, b.at, len(b.up.content)))
		c.end()
		return
	}
	c.asked.gone = c.asked.gone || b.at > kept
	if b.ended && !b.up.complete {
		c.o.v.wrong(fmt.Errorf("a server got the end of a body that its client has not sent: %+v", *c.asked))
	}
	switch {
	case b.fails >= 0 && b.at >= b.fails:
		b.fails = -1
		c.asked.none = true
		if c.reset = c.o.d.IntN(2) == 0; c.o.d.OneIn(3) {
			c.ends, c.until = 0, c.o.v.world.Now()+int64(20*time.Second)
			c.ready = true
			return
		}
		c.end()
	case c.ready || c.answered:
		if c.answered && b.ended {
			c.rest()
		}
	case b.ended:
		c.begin()
	case b.begin >= 0 && b.at >= b.begin:
		if c.o.d.IntN(2) == 0 {
			c.begin() // it goes on to read
			return
		}
		c.refuse()
	}
}

// refuse answers a body that the server does not want, and may close the connection.
func (c *originConn) refuse() {
	c.asked.refused, c.ready = true, true
	c.out = append(c.out[:0], "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n"...)
	if !c.o.v.calm && c.o.d.IntN(2) == 0 {
		c.after, c.asked.none = true, true // the end may come before the response is read
	}
}

// read takes what is there of the body, and compares it with what its client sends.
func (b *arriving) read(in *[]byte) error {
	for !b.ended {
		p := *in
		switch {
		case b.left > 0 && len(p) > 0:
			n := min(len(p), b.left)
			if !bytes.HasPrefix(b.up.content[b.at:], p[:n]) {
				return fmt.Errorf("another")
			}
			*in, b.at, b.left = p[n:], b.at+n, b.left-n
			b.crlf, b.ended = b.chunked && b.left == 0, !b.chunked && b.left == 0
		case b.crlf || b.last:
			if len(p) < 2 {
				return nil
			}
			if string(p[:2]) != "\r\n" {
				return fmt.Errorf("malformed: %.20q", p)
			}
			*in, b.crlf, b.ended = p[2:], false, b.last
		default:
			i := bytes.Index(p, []byte("\r\n"))
			if i < 0 || !b.chunked {
				return nil
			}
			n, err := strconv.ParseUint(string(p[:i]), 16, 31)
			if err != nil {
				return fmt.Errorf("malformed: %.20q", p)
			}
			*in, b.left, b.last = p[i+2:], int(n), n == 0
		}
	}
	if b.at != len(b.up.content) {
		return fmt.Errorf("too short")
	}
	return nil
}
