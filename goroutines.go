package chert

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/stream"
)

// serveGoroutines is the other engine: it accepts with l.Accept and gives each
// connection a goroutine, or one of Workers.
func (s *Server) serveGoroutines(sv *serving, cfg *bridge.Config) error {
	e := &goroutines{s: s, cfg: cfg, free: make(chan struct{}, 1)}
	if s.Workers > 0 {
		e.startWorkers()
		defer close(e.queue)
	}
	var pause time.Duration
	for {
		if !s.gate.Enter() && !e.awaitPlace(sv) {
			if err := e.refuseOne(sv.l); err != nil {
				return err
			}
			continue
		}
		nc, err := sv.l.Accept()
		if err == nil {
			pause = 0
			e.admit(nc)
			continue
		}
		s.gate.Leave("")
		if ne, ok := err.(net.Error); !ok || !temporary(ne) || s.stopping.Load() {
			return err
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.logf("chert: accept: %v; trying again in %v", err, pause)
		select {
		case <-time.After(pause):
		case <-sv.stop:
		}
	}
}

// temporary is net.Error's deprecated Temporary: of accept errors there is
// still no other way to tell which pass by themselves.
func temporary(err net.Error) bool {
	t, ok := err.(interface{ Temporary() bool })
	return ok && t.Temporary()
}

// goroutines is one Serve call of the goroutine engine.
type goroutines struct {
	s    *Server
	cfg  *bridge.Config
	free chan struct{} // a place may be free

	queue chan job // nil without Workers
}

// job is a connection to serve. It is tracked from the moment it is made, so
// that Shutdown knows of those that wait for a worker.
type job struct {
	nc   net.Conn
	peer string
	c    *stream.Conn
}

// awaitPlace waits a moment for another connection to end and reports whether
// a place was taken.
func (e *goroutines) awaitPlace(sv *serving) bool {
	e.s.gate.Await(func() {
		select {
		case e.free <- struct{}{}:
		default:
		}
	})
	t := time.NewTimer(100 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-e.free:
			if e.s.gate.Enter() {
				return true
			}
		case <-t.C:
			return e.s.gate.Enter()
		case <-sv.stop:
			return e.s.gate.Enter()
		}
	}
}

func (e *goroutines) refuseOne(l net.Listener) error {
	nc, err := l.Accept()
	if err == nil {
		go refuse(nc)
	}
	return err
}

// refuse answers 503. It reads a little first, in case a request is there:
// closing over unread bytes sends a reset.
func refuse(nc net.Conn) {
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Second))
	if _, err := nc.Write(refusal); err != nil {
		return
	}
	if half, ok := nc.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
		io.CopyN(io.Discard, nc, 64<<10)
	}
}

func (e *goroutines) admit(nc net.Conn) {
	peer := peerOf(nc)
	if !e.s.gate.Admit(peer) {
		e.s.gate.Leave("")
		go refuse(nc)
		return
	}
	j := job{nc, peer, stream.New(nc, &e.cfg.Shared.Limits)}
	e.s.track(j.c)
	if e.queue == nil {
		go e.serve(j)
		return
	}
	select {
	case e.queue <- j:
		if len(e.queue) > 0 {
			e.s.makeRoom()
		}
	default:
		e.leave(j)
		go refuse(nc)
	}
}

func (e *goroutines) leave(j job) {
	e.s.untrack(j.c)
	e.s.gate.Leave(j.peer)
}

func peerOf(nc net.Conn) string {
	if a := nc.RemoteAddr(); a != nil {
		return a.String()
	}
	return ""
}

func (e *goroutines) startWorkers() {
	n := e.s.QueueLength
	if n <= 0 {
		n = e.s.Workers
	}
	e.queue = make(chan job, n)
	for range e.s.Workers {
		go func() {
			for j := range e.queue {
				e.serve(j)
			}
		}()
	}
}

// makeRoom ends kept connections after their request, since others wait.
func (s *Server) makeRoom() {
	s.lock()
	defer s.mu.Unlock()
	for c := range s.streams {
		c.Drain()
	}
}

// serve is the life of one connection.
func (e *goroutines) serve(j job) {
	defer e.leave(j)
	state, err := handshake(e.cfg.BaseContext, j.nc)
	if err != nil {
		e.s.logf("http: TLS handshake error from %s: %v", j.peer, err)
		j.nc.Close()
		return
	}
	p := e.cfg.New(j.c, j.peer)
	p.SetTLS(state)
	j.c.Run(p)
}

// handshakeTimeout bounds a TLS handshake.
const handshakeTimeout = 10 * time.Second

// handshake completes a TLS connection's handshake, if it is one.
func handshake(ctx context.Context, nc net.Conn) (*tls.ConnectionState, error) {
	tc, ok := nc.(*tls.Conn)
	if !ok {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := tc.HandshakeContext(ctx); err != nil {
		var re tls.RecordHeaderError
		if errors.As(err, &re) && re.Conn != nil && looksLikeHTTP(re.RecordHeader) {
			io.WriteString(re.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
			err = errors.New("client sent an HTTP request to an HTTPS server")
		}
		return nil, err
	}
	state := tc.ConnectionState()
	return &state, nil
}

func looksLikeHTTP(h [5]byte) bool {
	switch string(h[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		return true
	}
	return false
}
