package websocket

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
)

// start is engines.Start. A server with ExtendedConnect gets its connections through an
// adapter, which makes an extended CONNECT over HTTP/2 (RFC 8441) of each upgrade.
func start(t testing.TB, s *chert.Server) *engines.Server {
	t.Helper()
	ts := engines.Start(t, s)
	if !s.ExtendedConnect {
		return ts
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ts.ListenAddr
	ts.ListenAddr = l.Addr().String()
	var wait sync.WaitGroup
	var mu sync.Mutex
	open := make(map[io.Closer]bool)
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		wait.Wait()
	})
	keep := func(c io.Closer) {
		mu.Lock()
		defer mu.Unlock()
		open[c] = true
	}
	wait.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			keep(nc)
			small(nc)
			wait.Go(func() {
				defer nc.Close()
				adapt(nc, addr, keep)
			})
		}
	})
	return ts
}

// small bounds what the socket of an end that is not the server's holds.
func small(nc net.Conn) {
	nc.(*net.TCPConn).SetReadBuffer(64 << 10)
	nc.(*net.TCPConn).SetWriteBuffer(64 << 10)
}

// adapt serves one connection of the adapter.
func adapt(nc net.Conn, addr string, keep func(io.Closer)) {
	br := bufio.NewReader(nc)
	req, err := http.ReadRequest(br)
	if err != nil {
		return
	}
	fields := []string{":method", "CONNECT", ":protocol", "websocket", ":scheme", "http", ":authority", req.Host, ":path", req.RequestURI}
	for k, vv := range req.Header {
		switch k {
		case "Connection", "Upgrade", "Sec-Websocket-Key":
			continue
		}
		for _, v := range vv {
			fields = append(fields, strings.ToLower(k), v)
		}
	}
	tn, err := dialTunnel(addr, fields...)
	if err != nil {
		return
	}
	keep(tn)
	defer tn.Close()
	if tn.status != "200" {
		fmt.Fprintf(nc, "HTTP/1.1 %s Refused\r\nConnection: close\r\n\r\n", tn.status)
		return
	}
	var head strings.Builder
	head.WriteString("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + acceptOf(req.Header.Get("Sec-Websocket-Key")) + "\r\n")
	for _, f := range tn.fields {
		if !f.IsPseudo() {
			fmt.Fprintf(&head, "%s: %s\r\n", f.Name, f.Value)
		}
	}
	io.WriteString(nc, head.String()+"\r\n")
	var wait sync.WaitGroup
	wait.Go(func() {
		if _, err := io.Copy(tn, br); err == nil {
			tn.closeWrite()
		} else {
			tn.Close()
			// As servers do before they close: what is unread then would be answered with a reset, which may
			// overtake what the client has not read yet.
			io.Copy(io.Discard, br)
		}
	})
	if _, err := io.Copy(nc, tn); err != nil {
		nc.(*net.TCPConn).SetLinger(0)
		nc.Close()
	}
	nc.(*net.TCPConn).CloseWrite()
	tn.Close()
	wait.Wait()
}

// tunnel is a stream of extended CONNECT, alone on its connection. It gives windows back
// when its data is read.
type tunnel struct {
	nc     net.Conn
	fr     *http2.Framer
	status string
	fields []hpack.HeaderField

	mu       sync.Mutex
	cond     sync.Cond
	wmu      sync.Mutex // for fr's writing
	in       bytes.Buffer
	conn     int64 // windows
	stream   int64
	err      error // what Read returns after in
	headers  bool
	promised bool // SETTINGS_ENABLE_CONNECT_PROTOCOL has come
	settled  bool
}

// dialTunnel opens a tunnel with these header fields. The error is a failed connection's;
// an answer is in status.
func dialTunnel(addr string, fields ...string) (*tunnel, error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	small(nc)
	tn := &tunnel{nc: nc, fr: http2.NewFramer(nc, nc), conn: 65535, stream: 65535}
	tn.cond.L = &tn.mu
	tn.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	io.WriteString(nc, http2.ClientPreface)
	tn.fr.WriteSettings()
	go tn.receive()
	tn.mu.Lock()
	defer tn.mu.Unlock()
	for !tn.settled && tn.err == nil {
		tn.cond.Wait()
	}
	if !tn.promised {
		nc.Close()
		return nil, fmt.Errorf("no SETTINGS_ENABLE_CONNECT_PROTOCOL: %v", tn.err)
	}
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	tn.wmu.Lock()
	tn.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	tn.wmu.Unlock()
	for !tn.headers && tn.err == nil {
		tn.cond.Wait()
	}
	if !tn.headers {
		nc.Close()
		return nil, tn.err
	}
	return tn, nil
}

func (tn *tunnel) receive() {
	for {
		f, err := tn.fr.ReadFrame()
		tn.mu.Lock()
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if f.IsAck() {
				break
			}
			if v, ok := f.Value(http2.SettingEnableConnectProtocol); ok && v == 1 {
				tn.promised = true
			}
			if v, ok := f.Value(http2.SettingInitialWindowSize); ok {
				tn.stream += int64(v) - 65535
			}
			tn.settled = true
			go tn.write(func() error { return tn.fr.WriteSettingsAck() })
		case *http2.PingFrame:
			if data := f.Data; !f.IsAck() {
				go tn.write(func() error { return tn.fr.WritePing(true, data) })
			}
		case *http2.WindowUpdateFrame:
			if f.StreamID == 0 {
				tn.conn += int64(f.Increment)
			} else {
				tn.stream += int64(f.Increment)
			}
		case *http2.MetaHeadersFrame:
			tn.headers, tn.status, tn.fields = true, f.PseudoValue("status"), f.Fields
			if f.StreamEnded() {
				tn.err = io.EOF
			}
		case *http2.DataFrame:
			tn.in.Write(f.Data())
			if f.StreamEnded() && tn.err == nil {
				tn.err = io.EOF
			}
		case *http2.RSTStreamFrame:
			if tn.err == nil {
				tn.err = fmt.Errorf("RST_STREAM %v", f.ErrCode)
			}
		}
		if err != nil && tn.err == nil {
			tn.err = err
		}
		tn.cond.Broadcast()
		tn.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (tn *tunnel) write(f func() error) error {
	tn.wmu.Lock()
	defer tn.wmu.Unlock()
	return f()
}

func (tn *tunnel) Read(p []byte) (int, error) {
	tn.mu.Lock()
	for tn.in.Len() == 0 && tn.err == nil {
		tn.cond.Wait()
	}
	if tn.in.Len() == 0 {
		defer tn.mu.Unlock()
		return 0, tn.err
	}
	n, _ := tn.in.Read(p)
	tn.mu.Unlock()
	tn.write(func() error {
		tn.fr.WriteWindowUpdate(0, uint32(n))
		return tn.fr.WriteWindowUpdate(1, uint32(n))
	})
	return n, nil
}

func (tn *tunnel) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		tn.mu.Lock()
		for (tn.conn <= 0 || tn.stream <= 0) && tn.err == nil {
			tn.cond.Wait()
		}
		if tn.err != nil {
			defer tn.mu.Unlock()
			return n, io.ErrClosedPipe
		}
		k := int(min(int64(len(p)), tn.conn, tn.stream, 16<<10))
		tn.conn -= int64(k)
		tn.stream -= int64(k)
		tn.mu.Unlock()
		if err := tn.write(func() error { return tn.fr.WriteData(1, false, p[:k]) }); err != nil {
			return n, err
		}
		n += k
		p = p[k:]
	}
	return n, nil
}

func (tn *tunnel) closeWrite() { tn.write(func() error { return tn.fr.WriteData(1, true, nil) }) }

func (tn *tunnel) Close() error { return tn.nc.Close() }

func acceptOf(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}
