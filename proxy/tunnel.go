package proxy

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/forward"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/origin"
	"github.com/chert-http/chert/internal/reason"
)

// webSocketKey returns a Sec-WebSocket-Key (RFC 6455 section 4.1), for the server of a client
// that needs none.
func webSocketKey() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return base64.StdEncoding.EncodeToString(b[:])
}

// webSocketAccept returns the Sec-WebSocket-Accept for a key (RFC 6455 section 4.2.2).
func webSocketAccept(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// accepted reports whether the server has answered the key of an extended CONNECT, as RFC 6455
// section 4.1 requires of whoever has sent it.
func (f *forwarding) accepted(x *origin.Exchange) bool {
	if f.accept == "" {
		return true // another protocol, which has no key
	}
	got := 0
	for i := range x.Response.Fields {
		if field := &x.Response.Fields[i]; field.ID == http1.FieldSecWebSocketAccept {
			if string(field.Value.Bytes(x.Head)) != f.accept {
				return false
			}
			got++
		}
	}
	return got == 1
}

// tunnel connects the client with a server that has switched to another protocol. The tunnel
// belongs to neither the Upstream nor the Pool: it ends when its ends do.
func (f *forwarding) tunnel(p *pick, x *origin.Exchange) {
	defer p.release()
	if f.extended != "" && !f.accepted(x) {
		f.noTunnel(p, x, errors.New("its Sec-WebSocket-Accept does not answer the key"))
		return
	}
	f.report.Tunnel = true
	if f.extended != "" {
		f.tunnel2(p, x)
		return
	}
	o := forward.Response{Minor: 1, Via: f.h.o.Via, Add: f.ownFields()}
	head, _, err := forward.AppendResponse(nil, x.Head, &x.Response, &o)
	if err != nil {
		x.Close()
		f.fail(p, reason.Malformed, err)
		return
	}
	server, received, ok := x.Tunnel()
	if !ok {
		f.fail(p, reason.ClientGone, nil)
		return
	}
	defer server.Close()
	client, buffered, err := f.control.Hijack()
	if err != nil {
		f.fail(p, reason.Internal, err)
		return
	}
	defer client.Close()
	if _, err := client.Write(append(head, received...)); err != nil {
		return
	}
	var early io.Reader = client
	if n := buffered.Reader.Buffered(); n > 0 {
		b, _ := buffered.Reader.Peek(n)
		early = io.MultiReader(bytes.NewReader(append([]byte(nil), b...)), client)
	}
	// A program ends a tunnel by the context of its request; the end of the client's connection
	// does not cancel it after Hijack.
	stop := context.AfterFunc(f.r.Context(), func() {
		server.Close()
		client.Close()
	})
	defer stop()
	relay(client, early, server)
}

// noTunnel refuses an extended CONNECT whose server has not accepted the upgrade.
func (f *forwarding) noTunnel(p *pick, x *origin.Exchange, err error) {
	x.Close()
	f.fail(p, reason.Malformed, err)
}

// ownFields returns the lines of the fields that middleware has set.
func (f *forwarding) ownFields() (lines []byte) {
	h := f.w.Header()
	f.setCookie(h)
	for _, name := range sortedKeys(h) {
		for _, value := range h[name] {
			if http1.ValidFieldName(name) && !forward.IsHop([]byte(name)) && name != "Content-Length" {
				lines = http1.AppendField(lines, name, value)
			}
		}
	}
	return lines
}

// tunnel2 is tunnel for a stream of HTTP/2 (RFC 8441).
func (f *forwarding) tunnel2(p *pick, x *origin.Exchange) {
	h := f.w.Header()
	o := forward.Response{Minor: 1}
	o.Fields(x.Head, &x.Response, http1.FramingNone, func(field *http1.Field, value []byte) {
		// RFC 8441 section 5: the key belongs to the handshake of HTTP/1.1.
		if field.ID == http1.FieldUpgrade || field.ID == http1.FieldSecWebSocketAccept {
			return
		}
		key := http1.CanonicalName(field.Name.Bytes(x.Head), field.ID)
		h[key] = append(h[key], string(value))
	})
	f.setCookie(h)
	server, received, ok := x.Tunnel()
	if !ok {
		f.fail(p, reason.ClientGone, nil)
		return
	}
	defer server.Close()
	f.w.WriteHeader(http.StatusOK)
	f.control.Flush()
	stream := &stream{f: f}
	if len(received) > 0 {
		if _, err := stream.Write(received); err != nil {
			return
		}
	}
	stop := context.AfterFunc(f.r.Context(), func() { server.Close() }) // the stream was reset
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := io.Copy(server, f.r.Body); err != nil {
			server.Close()
			return
		}
		closeWrite(server)
	}()
	_, err := io.Copy(stream, server)
	// The end of the response ends the stream, so the client cannot send more after it.
	server.Close()
	f.control.SetReadDeadline(time.Unix(1, 0))
	<-done
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// stream writes to the client at once.
type stream struct{ f *forwarding }

func (s *stream) Write(p []byte) (int, error) {
	n, err := s.f.w.Write(p)
	if err == nil {
		err = s.f.control.Flush()
	}
	return n, err
}

// relay copies in both directions until both have ended, or one has failed. The end of one is
// passed on as such: a client that has sent all may still wait for the rest.
func relay(client net.Conn, fromClient io.Reader, server net.Conn) {
	var wait sync.WaitGroup
	wait.Add(1)
	go func() {
		defer wait.Done()
		if _, err := io.Copy(server, fromClient); err != nil {
			server.Close()
			client.Close()
			return
		}
		closeWrite(server)
	}()
	if _, err := io.Copy(client, server); err != nil {
		server.Close()
		client.Close()
	} else {
		closeWrite(client)
	}
	wait.Wait()
}

// closeWrite ends one direction, or all if the connection cannot do that.
func closeWrite(nc net.Conn) {
	if c, ok := nc.(interface{ CloseWrite() error }); ok {
		c.CloseWrite()
		return
	}
	nc.Close()
}
