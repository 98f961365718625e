package load

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Relay passes the bytes of TCP connections on, each a delay after it has come, in both directions: a link with
// distance and without loss or a limit of its rate.
type Relay struct {
	Addr  string // to connect to
	l     net.Listener
	delay time.Duration
	to    string

	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

// relayPieces is how many reads of a direction may be under way: more than any window.
const (
	relayPieces = 4096
	relayPiece  = 64 << 10
)

// OpenRelay begins to relay to an address.
func OpenRelay(to string, delay time.Duration) (*Relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Relay{Addr: l.Addr().String(), l: l, delay: delay, to: to}
	go r.accept()
	return r, nil
}

func (r *Relay) accept() {
	for {
		near, err := r.l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", r.to)
		if err != nil {
			near.Close()
			continue
		}
		if !r.keep(near, far) {
			return
		}
		go r.pass(far, near)
		go r.pass(near, far)
	}
}

// keep notes connections to close; it closes them if that has come already.
func (r *Relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, conns...)
	if r.closed {
		r.closeAll()
	}
	return !r.closed
}

func (r *Relay) closeAll() {
	for _, c := range r.conns {
		c.Close()
	}
}

// Close ends it and all its connections.
func (r *Relay) Close() {
	r.l.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.closeAll()
}

type relayed struct {
	bytes []byte
	due   time.Time
}

// pass copies one direction.
func (r *Relay) pass(to, from net.Conn) {
	way := make(chan relayed, relayPieces)
	go func() {
		defer close(way)
		for {
			b := make([]byte, relayPiece)
			n, err := from.Read(b)
			if n > 0 {
				way <- relayed{b[:n], time.Now().Add(r.delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	failed := false
	for p := range way { // to the end, or the reader would wait
		if failed {
			continue
		}
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.bytes); err != nil {
			failed = true
			from.Close()
		}
	}
	to.(*net.TCPConn).CloseWrite()
}

// UploadH2 sends a body of size bytes to /upload in one request over TLS and HTTP/2, and returns how long that took.
func UploadH2(ctx context.Context, addr string, size int64) (time.Duration, error) {
	t := transportH2()
	defer t.CloseIdleConnections()
	if err := askH2(ctx, t, "https://"+addr+"/"); err != nil { // the handshake does not count
		return 0, err
	}
	begin := time.Now()
	answer, err := postH2(ctx, t, "https://"+addr+"/upload", io.LimitReader(zeros{}, size), size)
	if err != nil {
		return 0, err
	}
	took := time.Since(begin)
	if answer != size {
		return 0, errors.New("the server has not counted all bytes of the body")
	}
	return took, nil
}

// zeros is without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
