//go:build linux

package sim

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// proxyClient plays a client of a proxy.
type proxyClient struct {
	*client
	ups uploads
}

func newProxyClient(p peer) model {
	c := &proxyClient{client: newClient(p)}
	c.as = c
	return c
}

// Step implements sim.Actor.
func (c *proxyClient) Step() bool {
	c.look()
	did := c.client.Step()
	c.sending()
	return did
}

// look learns from the servers which responses may be cut off, and must.
func (c *proxyClient) look() {
	for i := range c.waiting {
		f := c.v.origins.got[c.waiting[i].id]
		c.waiting[i].cut = f != nil && f.cut
	}
}

// request implements speaker.
func (c *proxyClient) request() {
	if c.next++; c.d.OneIn(4) {
		c.upload()
		return
	}
	a := asked{id: uint64(c.no)<<32 | c.next, kind: "proxy", method: "GET", size: c.size(), read: -1}
	if c.d.OneIn(20) {
		a.method = "HEAD"
	}
	b := fmt.Appendf(c.out, "%s /proxy/%d/%d HTTP/1.1\r\nHost: sim\r\n", a.method, a.id, a.size)
	if c.d.OneIn(100) && !c.stays {
		b = append(b, "Connection: close\r\n"...)
		a.closes, c.closing = true, true
	}
	c.out = append(b, "\r\n"...)
	c.waiting = append(c.waiting, a)
}

// response implements speaker.
func (c *proxyClient) response(b []byte, eof bool) (used int, err error) {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return 0, errPartial
	}
	head := string(b[:end+2])
	if strings.HasPrefix(head, "HTTP/1.1 413") && len(c.waiting) > 0 {
		return c.refusedUpload(head, end+4)
	}
	if !strings.HasPrefix(head, "HTTP/1.1 50") || len(c.waiting) == 0 || strings.HasPrefix(head, "HTTP/1.1 503") {
		return c.client.response(b, eof)
	}
	a := c.waiting[0]
	f := c.v.origins.got[a.id]
	if c.calm || f != nil && !f.none && !c.v.tight {
		return 0, fmt.Errorf("an error for %+v, which got %+v", a, f)
	}
	_, value, _ := strings.Cut(head, "\r\nContent-Length: ")
	value, _, _ = strings.Cut(value, "\r\n")
	length, err := strconv.Atoi(value)
	if err != nil || !strings.Contains(head, "\r\nProxy-Status: ") {
		return 0, errors.New("an error of the proxy without Content-Length or Proxy-Status")
	}
	if a.method == "HEAD" {
		length = 0
	}
	if len(b)-end-4 < length {
		return 0, errPartial
	}
	c.closes(head)
	c.pop()
	c.denied++
	return end + 4 + length, nil
}

// closes notes whether the server ends the connection after this response: it does if it has
// not read the body of the request, and then answers none that come after.
func (c *proxyClient) closes(head string) {
	if strings.Contains(head, "\r\nConnection: close\r\n") {
		c.closing, c.excused = true, "refused"
	}
}
