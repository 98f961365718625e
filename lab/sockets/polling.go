//go:build !windows

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/cloudwego/netpoll"
)

// poll serves a net/http handler on netpoll: it calls request, on a goroutine of its pool, when a connection has
// something to read.
func poll(addr string, h http.Handler) error {
	l, err := netpoll.CreateListener("tcp", addr)
	if err != nil {
		return err
	}
	p := &polling{handler: h}
	prepare := func(netpoll.Connection) context.Context {
		return context.WithValue(context.Background(), upgraded{}, new(state))
	}
	loop, err := netpoll.NewEventLoop(p.request, netpoll.WithOnPrepare(prepare))
	if err != nil {
		return err
	}
	return loop.Serve(l)
}

// state is that of a connection; its context has it under the key upgraded. netpoll calls request for one connection in
// one goroutine at a time.
type state struct {
	echo func(io.ReadWriter) error // once it speaks WebSocket, and is read as messages arrive
}

type upgraded struct{}

type polling struct {
	handler http.Handler
	readers sync.Pool // of *bufio.Reader
}

// request serves what a connection has sent. A request that is not complete keeps the goroutine.
func (p *polling) request(ctx context.Context, c netpoll.Connection) error {
	st := ctx.Value(upgraded{}).(*state)
	if st.echo != nil {
		return st.messages(c)
	}
	r, _ := p.readers.Get().(*bufio.Reader)
	if r == nil {
		r = bufio.NewReader(nil)
	}
	r.Reset(c)
	defer func() {
		r.Reset(nil)
		p.readers.Put(r)
	}()
	for c.Reader().Len() > 0 || r.Buffered() > 0 {
		req, err := http.ReadRequest(r)
		if err != nil {
			return c.Close()
		}
		req.RemoteAddr = c.RemoteAddr().String()
		if strings.HasPrefix(req.URL.Path, "/gobwas-") {
			return st.upgrade(c, req)
		}
		w := &response{conn: c, reader: r, header: http.Header{}, status: http.StatusOK}
		p.handler.ServeHTTP(w, req)
		if w.hijacked {
			return c.Close()
		}
		_, _ = io.Copy(io.Discard, req.Body)
		if err := w.flush(req.Close); err != nil || req.Close {
			return c.Close()
		}
	}
	return nil
}

// upgrade makes a connection one whose messages are read as they arrive, without a goroutine in between: frame by frame
// for /gobwas-low, with package wsutil for /gobwas-high.
func (st *state) upgrade(c netpoll.Connection, req *http.Request) error {
	st.echo = wsutilEcho
	if req.URL.Path == "/gobwas-low" {
		st.echo = frameEcho
	}
	accept := acceptKey(req.Header.Get("Sec-WebSocket-Key"))
	// Not io.WriteString: the connection has a method of that name, which does not send.
	_, err := c.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept + "\r\n\r\n"))
	return err
}

func (st *state) messages(c netpoll.Connection) error {
	for c.Reader().Len() > 0 {
		if err := st.echo(c); err != nil {
			return c.Close()
		}
	}
	return nil
}

// response is what handlers write to: all is kept until they return.
type response struct {
	conn     netpoll.Connection
	reader   *bufio.Reader
	header   http.Header
	status   int
	body     bytes.Buffer
	hijacked bool
}

func (w *response) Header() http.Header         { return w.header }
func (w *response) WriteHeader(status int)      { w.status = status }
func (w *response) Write(b []byte) (int, error) { return w.body.Write(b) }

// Hijack implements http.Hijacker.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.hijacked = true
	return w.conn, bufio.NewReadWriter(w.reader, bufio.NewWriter(w.conn)), nil
}

func (w *response) flush(closes bool) error {
	out := make([]byte, 0, 256+w.body.Len())
	out = append(out, "HTTP/1.1 "+strconv.Itoa(w.status)+" "+http.StatusText(w.status)+"\r\nContent-Length: "+strconv.Itoa(w.body.Len())+"\r\n"...)
	for name, values := range w.header {
		for _, v := range values {
			out = append(out, name+": "+v+"\r\n"...)
		}
	}
	if closes {
		out = append(out, "Connection: close\r\n"...)
	}
	_, err := w.conn.Write(append(append(out, "\r\n"...), w.body.Bytes()...))
	return err
}
