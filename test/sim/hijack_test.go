//go:build linux

package sim

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/park"
)

// The protocol on hijacked connections: messages of an ID of 8 bytes, a length of 4 and what
// body returns. All are echoed; an empty one ends the connection.
const hijackHeader = 12

const hijackHead = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"

func hijackMessage(id uint64, size int) []byte {
	b := binary.BigEndian.AppendUint64(nil, id)
	return append(binary.BigEndian.AppendUint32(b, uint32(size)), body(id, size)...)
}

// How a handler hijacks; it is the request's path.
var hijackModes = [...]string{"here", "away", "late", "head", "park"}

func newHijack(v *served) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Count(r.URL.Path, "/") == 4 {
			v.handle(w, r)
			return
		}
		v.running.Add(1)
		mode := r.URL.Path[1:]
		if mode == "late" {
			_, port, _ := net.SplitHostPort(r.RemoteAddr)
			key, _ := strconv.ParseUint(port, 10, 64)
			v.world.Point(key)
			time.Sleep(time.Millisecond)
			v.world.Point(key)
		}
		head := hijackHead
		if mode == "head" {
			w.Header().Set("Connection", "Upgrade")
			w.WriteHeader(http.StatusSwitchingProtocols)
			head = ""
		}
		nc, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			v.running.Add(-1)
			http.Error(w, err.Error(), 500)
			return
		}
		h := &hijacked{v, nc, rw.Reader}
		if _, err := io.WriteString(nc, head); err != nil {
			h.end()
			return
		}
		switch mode {
		case "away":
			go h.serve()
		case "park":
			h.park()
		default:
			h.serve()
		}
	})
}

// hijacked is a connection that a handler has hijacked. As a net.Conn it returns first what
// Hijack has returned.
type hijacked struct {
	v *served
	net.Conn
	r *bufio.Reader
}

func (h *hijacked) Buffered() int              { return h.r.Buffered() }
func (h *hijacked) NetConn() net.Conn          { return h.Conn }
func (h *hijacked) Read(p []byte) (int, error) { return h.r.Read(p) }

func (h *hijacked) end() {
	h.Close()
	h.v.running.Add(-1)
}

// message echoes a message, and reports whether there may be another.
func (h *hijacked) message() bool {
	var head [hijackHeader]byte
	if _, err := io.ReadFull(h, head[:]); err != nil {
		return false
	}
	id, size := binary.BigEndian.Uint64(head[:]), binary.BigEndian.Uint32(head[8:])
	if size > maxBody {
		h.v.wrong(fmt.Errorf("message %x of a client has %d bytes", id, size))
		return false
	}
	m := append(head[:], make([]byte, size)...)
	if _, err := io.ReadFull(h, m[hijackHeader:]); err != nil {
		return false
	}
	if !bytes.Equal(m, hijackMessage(id, int(size))) {
		h.v.wrong(fmt.Errorf("message %x of a client is another", id))
	}
	_, err := h.Write(m)
	return err == nil && size > 0
}

func (h *hijacked) serve() {
	defer h.end()
	for h.message() {
	}
}

func (h *hijacked) park() {
	h.SetReadDeadline(time.Now().Add(10 * time.Minute))
	err := park.Park(h, func(net.Conn) {
		if !h.message() {
			h.end()
			return
		}
		h.park()
	})
	if err != nil {
		h.v.wrong(err)
		h.end()
	}
}

// hijackClient plays a client of a handler that hijacks, after some ordinary requests.
type hijackClient struct {
	peer
	next    uint64
	waiting []asked // as those of HTTP/1; size of an echo
	open    bool    // the head has arrived
	echoed  bool    // an echo has
	last    bool    // the server has been asked to end
}

func (c *hijackClient) state() string {
	return fmt.Sprintf("open %v, %d unanswered", c.open, len(c.waiting))
}

// Step implements sim.Actor.
func (c *hijackClient) Step() (did bool) {
	if c.over || c.paused() {
		return false
	}
	if c.s == nil {
		return c.connect()
	}
	if !c.calm && c.d.OneIn(2000) {
		c.leave()
		c.s = nil
		return true
	}
	if c.ask() {
		did = true
	}
	if c.push() {
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

func (c *hijackClient) connect() bool {
	if c.left <= 0 {
		c.over = true
		return false
	}
	if !c.dial() {
		return true
	}
	c.waiting, c.open, c.echoed, c.last = nil, false, false, false
	for c.d.OneIn(2) {
		c.next++
		a := asked{id: uint64(c.no)<<32 | c.next, kind: "quick", size: c.d.IntN(3000)}
		c.out = fmt.Appendf(c.out, "GET /quick/%d/%d/0 HTTP/1.1\r\nHost: sim\r\n\r\n", a.id, a.size)
		c.waiting = append(c.waiting, a)
	}
	c.out = fmt.Appendf(c.out, "GET /%s HTTP/1.1\r\nHost: sim\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
		hijackModes[c.d.IntN(len(hijackModes))])
	c.waiting = append(c.waiting, asked{kind: "hijack"})
	return true
}

func (c *hijackClient) ask() bool {
	if c.closing || len(c.out) > 64<<10 || len(c.waiting) >= 16 || len(c.waiting) > 0 && c.d.OneIn(4) {
		return false
	}
	if !c.open && !c.d.OneIn(8) {
		return false
	}
	if c.left <= 0 || c.d.OneIn(100) {
		c.closing = true
		if c.last = c.d.IntN(2) == 0; c.last {
			c.message(0)
		}
		return true
	}
	size := 1 + c.d.IntN(200)
	if c.d.OneIn(20) {
		size = 1 + c.d.IntN(20_000)
	}
	c.left--
	c.message(size)
	return true
}

func (c *hijackClient) message(size int) {
	c.next++
	a := asked{id: uint64(c.no)<<32 | c.next, kind: "echo", size: size}
	c.out = append(c.out, hijackMessage(a.id, size)...)
	c.waiting = append(c.waiting, a)
}

func (c *hijackClient) receive() bool {
	if c.closing && !c.last && !c.half && len(c.out) == 0 {
		c.half = true
		c.s.CloseWrite()
	}
	did, err := c.pull()
	if !did {
		return false
	}
	for len(c.in) > 0 && !c.over {
		used, perr := c.parse(c.in)
		if perr == errPartial {
			break
		}
		if perr != nil {
			c.fail("%v; %s; in %.300q", perr, c.state(), c.in)
			return true
		}
		c.in = c.in[used:]
	}
	if len(c.in) == 0 {
		c.in = nil
	}
	if err != nil && !c.over {
		c.ended(err)
	}
	return true
}

func (c *hijackClient) parse(b []byte) (used int, err error) {
	if c.excused != "" {
		return len(b), nil
	}
	if len(c.waiting) == 0 {
		return 0, errors.New("an answer to nothing")
	}
	a := c.waiting[0]
	if a.kind == "echo" {
		want := hijackMessage(a.id, a.size)
		if len(b) < len(want) {
			return 0, errPartial
		}
		if !bytes.Equal(b[:len(want)], want) {
			return 0, fmt.Errorf("not the echo of %+v", a)
		}
		used, c.echoed = len(want), true
	} else if used, err = c.response(b, a); err != nil {
		return used, err
	}
	if len(c.waiting) > 0 {
		c.waiting = c.waiting[1:]
	}
	c.note(a.kind, int(a.id&0xffffffff), a.size)
	c.done++
	return used, nil
}

// response reads that of an ordinary request or of the one that hijacks.
func (c *hijackClient) response(b []byte, a asked) (used int, err error) {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return 0, errPartial
	}
	head := string(b[:end+4])
	status := head[min(9, len(head)):min(12, len(head))]
	switch {
	case status == "408", status == "503" && c.v.mayRefuse(), status == "500" && c.v.tight && a.kind == "hijack":
		c.note("refused", 0, 0)
		c.excused, c.closing, c.waiting = "refused", true, nil
		return len(b), nil
	case a.kind == "hijack":
		if status != "101" {
			return 0, errors.New("no status 101")
		}
		c.open = true
		return end + 4, nil
	case status != "200" || !strings.Contains(head, "\r\nX-Id: "+strconv.FormatUint(a.id, 10)+"\r\n"):
		return 0, fmt.Errorf("not the response to %+v", a)
	case !strings.Contains(head, "\r\nContent-Length: "+strconv.Itoa(a.size)+"\r\n"):
		// Larger ones are chunked.
		n, err := checkChunks(b[end+4:], body(a.id, a.size), false)
		return end + 4 + n, err
	case len(b) < end+4+a.size:
		return 0, errPartial
	case !bytes.Equal(b[end+4:end+4+a.size], body(a.id, a.size)):
		return 0, errors.New("the body is another")
	}
	return end + 4 + a.size, nil
}

func (c *hijackClient) ended(err error) {
	c.noteEnd("ended with unanswered messages and bytes", err, len(c.waiting), len(c.in))
	switch {
	case len(c.in) == 0 && c.closing && len(c.waiting) == 0 && err == io.EOF:
	case c.excused != "":
	case c.v.tight && c.open && !c.echoed && len(c.in) == 0: // no descriptor for Hijack
	case !c.open && c.mayEndUnanswered(err):
	default:
		c.fail("the connection ends: %v; %s", err, c.state())
		return
	}
	c.s.Close()
	c.s = nil
}
