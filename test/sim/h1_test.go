//go:build linux

package sim

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/internal/poll"
)

// client plays a client of HTTP/1.
type client struct {
	peer
	next    uint64
	waiting []asked
	rest    []byte // body to be sent when 100 (Continue) has arrived, or after a moment
	restAt  int64
	last    bool // the end follows what is to be sent, with it or soon after
	as      speaker
	// answered counts the responses of this connection.
	answered int
}

// speaker is what a client asks for, and what it expects.
type speaker interface {
	request()
	// response reads one response from the front of b, and checks it.
	response(b []byte, eof bool) (used int, err error)
}

func newClient(p peer) *client {
	c := &client{peer: p}
	c.as = c
	return c
}

func (c *client) state() string { return fmt.Sprintf("%d unanswered", len(c.waiting)) }

// Next implements sim.Actor.
func (c *client) Next() int64 {
	if next := c.peer.Next(); next != poll.Never || c.over || c.rest == nil {
		return next
	}
	return c.restAt
}

// Step implements sim.Actor.
func (c *client) Step() (did bool) {
	if c.over || c.paused() {
		return false
	}
	if c.s == nil {
		return c.connect()
	}
	if !c.calm && c.d.OneIn(2000) {
		return c.misbehave()
	}
	if c.ask() {
		did = true
	}
	if c.send() {
		did = true
	}
	if c.arrive() {
		did = true
	}
	if c.receive() {
		did = true
	}
	if did {
		c.maybePause()
	}
	return did
}

func (c *client) connect() bool {
	if c.left <= 0 {
		c.over = true
		return false
	}
	if c.dial() {
		c.waiting, c.rest, c.last, c.answered = c.waiting[:0], nil, false, 0
	}
	return true
}

// misbehave ends the connection in one of the ways of clients.
func (c *client) misbehave() bool {
	switch c.d.IntN(4) {
	case 0, 1:
		c.leave()
		c.drop()
	case 2:
		if !c.half && !c.closing && len(c.out) == 0 && c.rest == nil {
			c.note("half-closed", 0, 0)
			c.excused, c.half = "half-closed", true
			c.s.CloseWrite()
		}
	case 3:
		if c.half || c.closing || len(c.out) > 0 || c.rest != nil {
			return false
		}
		c.note("garbage", 0, 0)
		c.s.Send([]byte("\x00garbage\r\n\r\n"))
		c.excused, c.closing, c.out, c.rest = "garbage", true, c.out[:0], nil
	}
	return true
}

func (c *client) drop() {
	c.left -= len(c.waiting)
	c.s = nil
}

// ask makes requests, some of them pipelined.
func (c *client) ask() bool {
	if c.closing || c.half || c.rest != nil || len(c.out) > 64<<10 || len(c.waiting) >= 16 || c.left <= len(c.waiting) {
		if c.left <= 0 && len(c.waiting) == 0 && !c.half {
			c.note("done", 0, 0)
			c.half, c.closing = true, true
			c.s.CloseWrite()
			return true
		}
		return false
	}
	if len(c.waiting) > 0 && c.d.OneIn(4) {
		return false
	}
	n := 1
	if c.d.OneIn(3) {
		n += c.d.IntN(8)
	}
	for range min(n, c.left-len(c.waiting)) {
		if c.as.request(); c.closing || c.rest != nil {
			break
		}
	}
	if c.left <= len(c.waiting) && c.rest == nil && c.d.OneIn(4) {
		c.last = true
	}
	return true
}

// request implements speaker.
func (c *client) request() {
	c.next++
	r := c.draw(uint64(c.no)<<32 | c.next)
	if c.calm && c.v.fleet == nil && r.kind == "quick" && len(c.waiting) > 0 && c.d.OneIn(32) {
		r.kind, r.path = "after", "/after"+strings.TrimPrefix(r.path, "/quick")
		c.v.turn(r.id)
	}
	a := r.asked
	b := append(c.out, a.method...)
	b = append(b, ' ')
	b = append(b, r.path...)
	b = append(b, " HTTP/1.1\r\nHost: sim\r\n"...)
	if c.d.OneIn(100) && !c.stays {
		b = append(b, "Connection: close\r\n"...)
		a.closes, c.closing = true, true
	}
	if a.cut {
		a.closes, c.closing = true, true
	}
	if a.method == "POST" {
		b = c.post(b, r.content)
	} else {
		b = append(b, "\r\n"...)
	}
	c.out = b
	c.waiting = append(c.waiting, a)
}

// post appends the rest of a head and the content, with a length or chunked, maybe after
// 100 (Continue).
func (c *client) post(b, content []byte) []byte {
	expect := c.d.OneIn(5) && len(content) > 0
	if expect {
		b = append(b, "Expect: 100-continue\r\n"...)
	}
	var rest []byte
	if c.d.IntN(2) == 0 {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(len(content)), 10)
		b = append(b, "\r\n\r\n"...)
		rest = content
	} else {
		b = append(b, "Transfer-Encoding: chunked\r\n\r\n"...)
		for len(content) > 0 {
			n := 1 + c.d.IntN(min(len(content), 5000))
			rest = strconv.AppendInt(rest, int64(n), 16)
			rest = append(rest, "\r\n"...)
			rest = append(rest, content[:n]...)
			rest = append(rest, "\r\n"...)
			content = content[n:]
		}
		rest = append(rest, "0\r\n\r\n"...)
	}
	if expect {
		c.rest, c.restAt = rest, c.v.world.Now()+int64(time.Second)
		return b
	}
	return append(b, rest...)
}

func (c *client) send() bool {
	if c.rest != nil && c.v.world.Now() >= c.restAt {
		c.out = append(c.out, c.rest...)
		c.rest = nil
	}
	did := c.push()
	if c.last && len(c.out) == 0 && c.rest == nil && !c.half {
		c.note("half-closed after its last request", 0, 0)
		c.half, c.closing = true, true
		c.excused = cmp.Or(c.excused, "half-closed") // what it has sent may have been garbage
		c.s.CloseWrite()
		return true
	}
	return did
}

var errPartial = errors.New("partial")

func (c *client) receive() bool {
	did, err := c.pull()
	if !did {
		return false
	}
	rest := c.in
	for len(rest) > 0 && !c.over {
		used, perr := c.as.response(rest, err != nil)
		if perr == errPartial {
			break
		}
		if perr != nil {
			c.fail("%v in %.300q", perr, rest)
			return true
		}
		rest = rest[used:]
	}
	c.in = append(c.in[:0], rest...) // keeps the memory
	if err != nil {
		c.ended(err)
	}
	return true
}

// ended judges the end of the connection.
func (c *client) ended(err error) {
	c.noteEnd("ended with unanswered requests and bytes", err, len(c.waiting), len(c.in))
	switch {
	case c.calm && c.half && c.quiet > int64(10*time.Second):
		c.fail("the end came %v after the client's", time.Duration(c.quiet))
		return
	case len(c.waiting) == 0 && len(c.in) == 0:
	case c.excused != "" || len(c.waiting) > 0 && c.waiting[0].cut || slices.ContainsFunc(c.waiting, mayEnd):
	case c.calm && c.v.fleet != nil && (len(c.in) > 0 || c.answered == 0):
		c.fail("a server that is being replaced has cut a response, or its first: %d unanswered, %d bytes", len(c.waiting), len(c.in))
		return
	case c.v.inside.Ending() || !c.calm && (c.v.cutsAllowed() || err != io.EOF):
	default:
		c.fail("%d requests have no response, first %+v", len(c.waiting), c.waiting[0])
		return
	}
	c.s.Close()
	c.drop()
}

// mayEnd reports whether the response is a file's that may not be sent whole: what is queued
// before it is then dropped too.
func mayEnd(a asked) bool { return a.cut && a.file != nil }

// response implements speaker.
func (c *client) response(b []byte, eof bool) (used int, err error) {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return 0, errPartial
	}
	head := b[:end+2]
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 ")) || len(head) < 14 {
		return 0, errors.New("no status line")
	}
	status, err := strconv.Atoi(string(head[9:12]))
	if err != nil {
		return 0, err
	}
	if status == 100 {
		if c.rest != nil {
			c.out = append(c.out, c.rest...)
			c.rest = nil
		}
		return end + 4, nil
	}
	if len(c.waiting) == 0 {
		if c.excused != "" || status == 408 || status == 503 {
			return len(b), nil
		}
		return 0, errors.New("a response to no request")
	}
	a := c.waiting[0]
	var id []byte
	length, read, chunked, closes, late := -1, -1, false, false, false
	for f := head[bytes.IndexByte(head, '\n')+1:]; len(f) > 0; {
		n := bytes.IndexByte(f, '\n') // the last line has its end, too
		line := bytes.TrimSuffix(f[:n], []byte("\r"))
		f = f[n+1:]
		var value []byte
		name := line
		if i := bytes.IndexByte(line, ':'); i >= 0 && bytes.HasPrefix(line[i:], []byte(": ")) {
			name, value = line[:i], line[i+2:]
		}
		switch string(name) {
		case "Content-Length":
			length, err = strconv.Atoi(string(value))
		case "X-Id":
			id = value
		case "X-Late":
			late = true
		case "X-Read":
			read, err = strconv.Atoi(string(value))
		case "Transfer-Encoding":
			chunked = string(value) == "chunked"
		case "Connection":
			closes = string(value) == "close"
		}
		if err != nil {
			return 0, err
		}
	}
	rest := b[end+4:]
	if status != 200 {
		return c.refused(status, a, end+4, length, len(rest), closes)
	}
	if string(id) != string(strconv.AppendUint(make([]byte, 0, 20), a.id, 10)) {
		return 0, fmt.Errorf("response of %s to request %d", id, a.id)
	}
	if a.read >= 0 && read != a.read {
		return 0, fmt.Errorf("the handler has read %d of %d bytes", read, a.read)
	}
	want := body(a.id, a.size)
	switch {
	case a.method == "HEAD":
		used = end + 4
	case chunked:
		n, err := checkChunks(rest, want, a.cut)
		if err != nil {
			return 0, err
		}
		used = end + 4 + n
	case length >= 0:
		if length != a.size && !a.cut {
			return 0, fmt.Errorf("length %d instead of %d", length, a.size)
		}
		if len(rest) < length {
			return 0, errPartial
		}
		if !bytes.Equal(rest[:length], want[:min(length, len(want))]) {
			return 0, errors.New("the body is another")
		}
		used = end + 4 + length
	default:
		return 0, errors.New("a response without framing")
	}
	if a.cut {
		return 0, errors.New("a response that was aborted is whole")
	}
	if late {
		return 0, errors.New("what was before it did not come while its handler ran")
	}
	c.note(a.kind, int(a.id&0xffffffff), a.size)
	c.pop()
	c.done++
	c.answered++
	if closes && !a.closes {
		// The server says that it will close: what it has not answered it has not begun.
		c.closing, c.excused = true, "Connection: close"
	}
	return used, nil
}

// pop notes that the first response is there, of which the next one's handler may wait to hear.
func (c *client) pop() {
	c.waiting = slices.Delete(c.waiting, 0, 1) // keeps the memory
	c.left--
	if len(c.waiting) > 0 && c.waiting[0].kind == "after" {
		close(c.v.turn(c.waiting[0].id))
	}
}

// refused accepts a response other than 200 where the server may give one.
func (c *client) refused(status int, a asked, head, length, rest int, closes bool) (int, error) {
	switch {
	case status == 400 && c.excused == "garbage":
	case status == 408:
	case status == 503 && c.v.mayRefuse():
	default:
		return 0, fmt.Errorf("status %d for %+v", status, a)
	}
	if a.method == "HEAD" {
		length = 0
	}
	if rest < length {
		return 0, errPartial
	}
	if c.note("status", status, int(a.id&0xffffffff)); closes {
		c.closing, c.excused = true, "refused"
	}
	c.pop()
	c.denied++
	return head + max(length, 0), nil
}

// checkChunks compares a chunked body.
func checkChunks(b, want []byte, cut bool) (used int, err error) {
	for {
		i := bytes.Index(b[used:], []byte("\r\n"))
		if i < 0 {
			return 0, errPartial
		}
		n, err := strconv.ParseUint(string(b[used:used+i]), 16, 31)
		if err != nil {
			return 0, err
		}
		used += i + 2
		if len(b)-used < int(n)+2 {
			return 0, errPartial
		}
		if int(n) > len(want) || !bytes.Equal(b[used:used+int(n)], want[:n]) {
			return 0, errors.New("the body is another")
		}
		want = want[n:]
		if used += int(n); string(b[used:used+2]) != "\r\n" {
			return 0, errors.New("no end of a chunk")
		}
		used += 2
		if n == 0 {
			if len(want) > 0 && !cut {
				return 0, fmt.Errorf("%d bytes are missing", len(want))
			}
			return used, nil
		}
	}
}
