package faults

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// faulty is a net.Conn that panics at the n-th call of a method.
type faulty struct {
	net.Conn
	method string
	n      int32
	calls  atomic.Int32
	closed atomic.Int32
	gone   chan struct{}
}

func (f *faulty) count(method string) {
	if method == f.method && f.calls.Add(1) == f.n {
		panic("the " + method + " of a test")
	}
}

func (f *faulty) Read(p []byte) (int, error) {
	f.count("Read")
	return f.Conn.Read(p)
}

func (f *faulty) Write(p []byte) (int, error) {
	f.count("Write")
	return f.Conn.Write(p)
}

func (f *faulty) SetReadDeadline(t time.Time) error {
	f.count("SetReadDeadline")
	return f.Conn.SetReadDeadline(t)
}

func (f *faulty) SetWriteDeadline(t time.Time) error {
	f.count("SetWriteDeadline")
	return f.Conn.SetWriteDeadline(t)
}

func (f *faulty) CloseWrite() error {
	f.count("CloseWrite")
	return f.Conn.(*net.TCPConn).CloseWrite()
}

func (f *faulty) RemoteAddr() net.Addr {
	f.count("RemoteAddr")
	return f.Conn.RemoteAddr()
}

func (f *faulty) Close() error {
	err := f.Conn.Close()
	if f.closed.Add(1) == 1 {
		close(f.gone)
	}
	f.count("Close")
	return err
}

// faultyListener makes connections of the given kind, or of none.
type faultyListener struct {
	net.Listener
	mu   sync.Mutex
	next *faulty
}

func (l *faultyListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.next
	if l.next = nil; f == nil {
		f = &faulty{gone: make(chan struct{})}
	}
	f.Conn = nc
	return f, nil
}

// A net.Conn of another package that panics loses its own connection and nothing else, on
// whichever goroutine it does.
func TestForeignConnPanics(t *testing.T) {
	t.Parallel()
	if engines.Layered {
		t.Skip("the relay does not expect connections that end so")
	}
	for name, set := range map[string]func(*chert.Server){
		"":           func(*chert.Server) {},
		"by address": func(s *chert.Server) { s.MaxConnsPerAddr = 100 },
		"h2c": func(s *chert.Server) {
			s.Protocols = new(http.Protocols)
			s.Protocols.SetHTTP1(true)
			s.Protocols.SetUnencryptedHTTP2(true)
		},
		"handlers":  func(s *chert.Server) { s.MaxHandlers = 2 },
		"deadlines": func(s *chert.Server) { s.WriteTimeout = time.Hour },
	} {
		l := &faultyListener{Listener: servertest.ListenTCP(t)}
		s := &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			if r.URL.Path == "/wait" {
				<-r.Context().Done() // another goroutine reads
			}
			http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour))
			put(w, strings.Repeat("x", 100_000))
		})}
		set(s)
		cs := new(engines.Counting)
		cs.Count(s)
		cs.Server = engines.StartOn(t, s, l)
		panics := int64(0)
		for _, method := range []string{"Read", "Write", "SetReadDeadline", "SetWriteDeadline", "CloseWrite", "Close", "RemoteAddr"} {
			for n := range int32(4) {
				for _, path := range []string{"/", "/wait"} {
					cs.Log.Reset()
					f := &faulty{method: method, n: n + 1, gone: make(chan struct{})}
					l.mu.Lock()
					l.next = f
					l.mu.Unlock()
					nc, err := net.Dial("tcp", cs.ListenAddr)
					if err != nil {
						t.Fatal(err)
					}
					go func() {
						io.WriteString(nc, post(path, string(servertest.Pattern(100_000))))
						if path != "/wait" {
							io.WriteString(nc, ask("GET /")+ask("GET /bad", "Connection: close")+"more")
						}
						nc.(*net.TCPConn).CloseWrite()
					}()
					io.Copy(io.Discard, nc)
					servertest.Await(t, f.gone, name+": Close after "+method)
					nc.Close()
					if f.calls.Load() < f.n {
						continue // it was never called so often
					}
					panics++
					servertest.Eventually(t, "the panic is logged", func() bool {
						got := cs.Log.String()
						return strings.Contains(got, "http: panic serving") && strings.Contains(got, "the "+method+" of a test") && strings.Contains(got, "faulty).count")
					})
				}
			}
		}
		if panics < 10 {
			t.Errorf("%s: only %d connections have panicked", name, panics)
		}
		cs.Alive()
		cs.Settled(1)
	}
}

// The same during a handshake that takes too long, where crypto/tls would call Close on a
// goroutine of its own.
func TestForeignConnPanicsShaking(t *testing.T) {
	t.Parallel()
	cert, _ := servertest.Certificate(t)
	l := &faultyListener{Listener: servertest.ListenTCP(t)}
	ts := engines.StartTLS(t, &chert.Server{Handler: faultOK, ReadHeaderTimeout: time.Millisecond}, l, cert)
	for range 30 { // before, the panic was on that goroutine in one of two
		f := &faulty{method: "Close", n: 1, gone: make(chan struct{})}
		l.mu.Lock()
		l.next = f
		l.mu.Unlock()
		ts.Log.Reset()
		c := servertest.Dial(t, ts.ListenAddr)
		c.Ended()
		servertest.Await(t, f.gone, "Close")
		servertest.Eventually(t, "the panic and the timeout are logged", func() bool {
			got := ts.Log.String()
			return strings.Contains(got, "the Close of a test") && strings.Contains(got, "i/o timeout")
		})
	}
}

// A client that sends plain HTTP to TLS and does not read the response is given up on, also
// over a connection without any buffer.
func TestForeignPlainAnswerNotTaken(t *testing.T) {
	t.Parallel()
	cert, _ := servertest.Certificate(t)
	m := servertest.NewMemory()
	engines.StartTLS(t, &chert.Server{Handler: faultOK, ReadHeaderTimeout: time.Second}, m, cert)
	c := m.Dial(t)
	c.SetDeadline(time.Now().Add(servertest.Patience))
	if _, err := io.WriteString(c, ask("GET /")+string(servertest.Pattern(10_000))); servertest.IsTimeout(err) || err == nil {
		t.Errorf("Write returned %v", err)
	}
}

// untimed is a net.Conn without deadlines, as those of SSH are.
type untimed struct {
	net.Conn
	reads chan struct{} // one for each Read that begins
	gone  chan struct{}
	once  sync.Once
}

func (c *untimed) Read(p []byte) (int, error) {
	c.reads <- struct{}{}
	return c.Conn.Read(p)
}

func (c *untimed) SetDeadline(time.Time) error      { return errors.ErrUnsupported }
func (c *untimed) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (c *untimed) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }

func (c *untimed) Close() error {
	c.once.Do(func() { close(c.gone) })
	return c.Conn.Close()
}

// halfUntimed is an untimed that has CloseWrite.
type halfUntimed struct{ *untimed }

func (c halfUntimed) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

type untimedListener struct {
	net.Listener
	half bool
	c    *untimed
}

func (l *untimedListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if l.c.Conn = nc; l.half {
		return halfUntimed{l.c}, nil
	}
	return l.c, nil
}

// A connection without deadlines ends after a response that was sent before the request's
// body, although its client neither sends more nor closes.
func TestForeignUntimedEnds(t *testing.T) {
	t.Parallel()
	if engines.Layered {
		t.Skip("the relay has buffers of its own")
	}
	large := strings.Repeat("x", 60_000)
	for _, half := range []bool{false, true} {
		l := &untimedListener{servertest.ListenSmall(t, 4<<10), half, &untimed{reads: make(chan struct{}, 1000), gone: make(chan struct{})}}
		ts := engines.StartOn(t, &chert.Server{Handler: answersEarly(large)}, l)
		c := ts.DialSmall(4 << 10)
		c.Send("POST /head HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 1000000\r\n\r\n")
		for range 2 { // of the head, and of the body while the response waits
			servertest.Await(t, l.c.reads, "Read")
		}
		if res, _ := c.Response("POST"); res.Header.Get("X") != large {
			t.Error("the response is cut short")
		}
		servertest.Await(t, l.c.gone, "Close")
	}
}

// One for which there is no room is closed although its client does not read why.
func TestForeignUntimedRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, m := engines.StartMemory(t, &chert.Server{MaxConns: 1, Handler: faultOK})
		held := m.Patient(t)
		held.Send("GET / HT")
		client, server := net.Pipe()
		defer client.Close()
		u := &untimed{Conn: server, gone: make(chan struct{})}
		m.Conns <- u
		if d := servertest.Took(func() { <-u.gone }); d > 2*time.Second {
			t.Errorf("closed after %v", d)
		}
		held.Close()
	})
}

// prefaceConn is a connection as Caddy makes it for HTTP/2 in plain text: it compares what
// is read with the preface, and reads beyond that if it gets more than that at once.
type prefaceConn struct {
	net.Conn
	at int
}

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

func (c *prefaceConn) Read(p []byte) (int, error) {
	if c.at >= len(preface) {
		return c.Conn.Read(p)
	}
	n, err := c.Conn.Read(p)
	for i := range n {
		if p[i] != preface[c.at] {
			c.Conn.Close()
			return 0, errors.New("no preface")
		}
		c.at++
	}
	return n, err
}

type prefaceListener struct{ net.Listener }

func (l prefaceListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &prefaceConn{Conn: nc}, nil
}

func TestPrefaceIsReadAlone(t *testing.T) {
	t.Parallel()
	if engines.Layered {
		t.Skip("it is plain text")
	}
	alikeInMemory(t, func(t *testing.T, e chert.Engine) {
		s := &chert.Server{Engine: e, Handler: faultOK, Protocols: new(http.Protocols)}
		s.Protocols.SetUnencryptedHTTP2(true)
		ts := engines.StartOn(t, s, prefaceListener{servertest.ListenTCP(t)})
		tr := &http.Transport{Protocols: s.Protocols}
		defer tr.CloseIdleConnections()
		for range 3 {
			res, err := (&http.Client{Transport: tr}).Get("http://" + ts.ListenAddr)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(res.Body); string(body) != "ok" || err != nil {
				t.Errorf("%q, %v", body, err)
			}
			res.Body.Close()
		}
		if got := ts.Log.String(); got != "" {
			t.Errorf("logged: %s", got)
		}
	})
}
