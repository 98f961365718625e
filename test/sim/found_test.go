//go:build linux

package sim

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sim"
	"github.com/chert-http/chert/websocket"
)

// script is an actor that sends at once, and receives until the end.
type script struct {
	s    *sim.Socket
	send string
	ends bool // it half-closes a while later
	deaf bool // it receives nothing
	got  strings.Builder
	over bool
}

func (a *script) Next() int64 { return poll.Never }

func (a *script) Step() bool {
	if a.over {
		return false
	}
	if a.send != "" {
		a.s.Send([]byte(a.send))
		a.send = ""
		return true
	}
	if a.s.Unarrived() {
		a.s.Arrive(1 << 30)
		return true
	}
	if a.deaf {
		return false
	}
	var b [1024]byte
	n, err := a.s.Receive(b[:])
	a.got.Write(b[:n])
	if err != nil {
		a.s.Close()
		a.over = true
	}
	return n > 0 || err != nil
}

// simulated runs a server of TLS or not, as more sets it up, and then f in its bubble. Nothing
// fails, besides what descriptors beyond limit do.
func simulated(t *testing.T, limit int, h http.Handler, more func(*served), f func(v *served, w *sim.World)) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	inBubble(t, t.Name(), 1, func() (r result) {
		d := sim.NewDice(1, sim.Faults{})
		k := sim.NewKernel(d, limit)
		k.Violated = t.Errorf
		w := sim.NewWorld(k, d)
		fail := func(err error) { t.Error(err) }
		s := setup{loops: 1, placement: chert.PlacementInline}
		v, err := serve(s, d, w, func(*served) http.Handler { return h }, more, fail)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		f(v, w)
		stopped := make(chan error, 1)
		go func() { stopped <- v.Shutdown(context.Background()) }()
		w.Run(func() bool { return len(stopped) > 0 && k.Pollers() == 0 && w.Parked() == 0 }, time.Hour)
		<-v.ended
		if err := v.left(); err != nil {
			t.Error(err)
		}
		return r
	})
}

// scripted runs a server whose client plays the last of some scripts, while others play
// the rest, and returns what it receives.
func scripted(t *testing.T, limit, room int, h http.Handler, scripts ...*script) (got string) {
	t.Helper()
	simulated(t, limit, h, nil, func(v *served, w *sim.World) {
		var a *script
		for _, a = range scripts {
			a.s = v.dial("10.0.0.1:1024", room)
			w.Add(a)
			never := func() bool { return false }
			w.Run(never, time.Millisecond)
			if a.ends {
				a.s.CloseWrite()
				w.Run(never, time.Millisecond)
			}
		}
		if w.Run(func() bool { return a.over }, 30*time.Second) {
			t.Errorf("the connection does not end; received %q", a.got.String())
		}
		for _, a := range scripts {
			a.s.Reset()
			a.over = true
		}
		got = a.got.String()
	})
	return got
}

// A client that has received 101 speaks another protocol. When Hijack then fails, for lack
// of a descriptor, what it sends must not be read as requests.
func TestFailedHijackAfter101(t *testing.T) {
	requests := 0
	var failure error
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "x")
		w.WriteHeader(http.StatusSwitchingProtocols)
		_, _, failure = http.NewResponseController(w).Hijack()
	})
	// The listening socket, its reserve and the connection.
	got := scripted(t, 3, 1<<16, h, &script{
		send: "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n" +
			"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"})
	if failure == nil {
		t.Fatal("Hijack has found a descriptor")
	}
	if requests != 1 || strings.Count(got, "HTTP/1.1") > 1 {
		t.Errorf("%d requests; received %q", requests, got)
	}
}

// Hijack waits until the client has accepted earlier answers. If the client says meanwhile
// that it sends no more, the loop must go on with others.
func TestHijackWaitsAlone(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/hijack" {
			w.Write(make([]byte, 1000))
			return
		}
		nc, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			nc.Close()
		}
	})
	ask := "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	got := scripted(t, 100, 16, h,
		&script{send: ask + "GET /hijack HTTP/1.1\r\nHost: a\r\n\r\n", ends: true, deaf: true},
		&script{send: ask, ends: true})
	if !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") {
		t.Errorf("another client has received %q", got)
	}
}

// lateReader is a client over TLS that receives nothing, between the handshake and the time
// when the server has done all that it can.
type lateReader struct {
	t    *secure
	late bool
	got  strings.Builder
	end  error
}

func (a *lateReader) Next() int64 { return poll.Never }

func (a *lateReader) Step() bool {
	if a.end != nil {
		return false
	}
	if a.t.Unarrived() {
		a.t.Arrive(1 << 30)
		return true
	}
	if a.t.shake == nil && !a.late {
		return false
	}
	var b [1024]byte
	n, err := a.t.Receive(b[:])
	a.got.Write(b[:n])
	if err != nil {
		a.end = err
		a.t.Close()
	}
	return a.t.moved
}

// The last record of a response may be all that the socket accepts. close_notify must come
// after it nevertheless: without that, a client cannot know that nothing was cut off.
func TestCloseNotifyWaitsForRoom(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, 1000)) })
	const whole = 1100 // about what is sent
	for room := whole - 100; room < whole+200; room += 10 {
		a := &lateReader{}
		plain := func(v *served) { v.TLSConfig = &tls.Config{Certificates: []tls.Certificate{identity}} }
		simulated(t, 100, h, plain, func(v *served, w *sim.World) {
			a.t = newSecure(v.dial("10.0.0.1:1024", room), &tls.Config{RootCAs: roots, ServerName: "sim"})
			a.t.Send([]byte("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
			w.Add(a)
			w.Run(func() bool { return false }, 10*time.Millisecond)
			a.late = true
			w.Run(func() bool { return a.end != nil }, 30*time.Second)
		})
		if a.end != io.EOF || !strings.HasSuffix(a.got.String(), "\r\n\r\n"+strings.Repeat("\x00", 1000)) {
			t.Errorf("room for %d bytes: received %d, then %v", room, a.got.Len(), a.end)
		}
	}
}

// A server that does not keep a connection answers a request while the client's next one
// arrives. To close with that unread would send a reset, which may destroy the answer before
// the client has read it (RFC 9112 section 9.6).
func TestNoResetBehindAnswer(t *testing.T) {
	a := &script{send: "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n"}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.s.Send([]byte("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n"))
		a.s.Arrive(1 << 30)
		io.WriteString(w, "answer")
	})
	simulated(t, 100, h, nil, func(v *served, w *sim.World) {
		v.SetKeepAlivesEnabled(false)
		var lost sim.Faults
		lost[sim.Lost] = 1
		v.dice.Faults(lost)
		a.s = v.dial("10.0.0.1:1024", 1<<16)
		w.Add(a)
		if w.Run(func() bool { return a.over }, 30*time.Second) {
			t.Error("the connection does not end")
		}
	})
	if got := a.got.String(); !strings.HasSuffix(got, "\r\n\r\nanswer") {
		t.Errorf("received %q", got)
	}
}

// A WebSocket that Options.Serve drives is a net.Conn. Over TLS its end must be that of the socket:
// a reset where it is to be reset, and no close_notify of crypto/tls, which waits for room for
// five seconds, for a client that has not accepted anything for thirty.
func TestSlowWebSocketOverTLS(t *testing.T) {
	for _, slow := range []websocket.Slow{websocket.SlowDrop, websocket.SlowClose} {
		var begun time.Time
		var lasted atomic.Int64 // nanoseconds, until OnClose
		h, err := websocket.New(&websocket.Options{
			Slow:         slow,
			PingInterval: -1,
			Serve: func(c *websocket.Conn, _ *http.Request) {
				begun = time.Now()
				for c.Send(websocket.TypeBinary, make([]byte, 4000)) == nil {
				}
				c.Read(context.Background())
			},
			OnClose: func(*websocket.Conn, websocket.Code, string) { lasted.Store(int64(time.Since(begun))) },
		})
		if err != nil {
			t.Fatal(err)
		}
		a := &lateReader{}
		simulated(t, 100, h, speakTLS, func(v *served, w *sim.World) {
			a.t = newSecure(v.dial("10.0.0.1:1024", 8<<10), &tls.Config{RootCAs: roots, ServerName: "sim", Certificates: []tls.Certificate{identity}})
			a.t.Send([]byte("GET / HTTP/1.1\r\nHost: sim\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
				"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
			w.Add(a)
			w.Run(func() bool { return lasted.Load() > 0 }, time.Minute)
			a.late = true
			w.Run(func() bool { return a.end != nil }, time.Minute)
		})
		if lasted := time.Duration(lasted.Load()); slow == websocket.SlowDrop && lasted > 31*time.Second {
			t.Errorf("the connection has ended %v after its client has read last", lasted)
		}
		if slow == websocket.SlowClose && a.end != syscall.ECONNRESET {
			t.Errorf("the connection of a slow client ends by %v", a.end)
		}
	}
}
