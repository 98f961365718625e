package park

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

type parking func(raw syscall.RawConn, now bool, ready func()) error

// eachWay runs f for this system's Park, and for that of systems without epoll.
func eachWay(t *testing.T, f func(t *testing.T, park parking)) {
	t.Parallel()
	for name, park := range map[string]parking{"Park": Park, "on a goroutine": onGoroutine} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, park)
		})
	}
}

// pair returns two connected connections, which are closed with the test, and the first
// one's socket.
func pair(t testing.TB) (nc, peer *net.TCPConn, raw syscall.RawConn) {
	t.Helper()
	nc, peer = servertest.TCPConns(t)
	t.Cleanup(func() {
		nc.Close()
		peer.Close()
	})
	return nc, peer, socket(t, nc)
}

func socket(t testing.TB, nc syscall.Conn) syscall.RawConn {
	t.Helper()
	raw, err := nc.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// outcome describes what a Read returns.
func outcome(nc net.Conn) string {
	b := make([]byte, 10)
	n, err := nc.Read(b)
	switch {
	case err == nil:
		return string(b[:n])
	case errors.Is(err, net.ErrClosed):
		return "closed"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
	case errors.Is(err, syscall.ECONNRESET):
		return "reset"
	}
	return err.Error()
}

func TestReady(t *testing.T) {
	nothing := func(nc, peer *net.TCPConn) {}
	send := func(nc, peer *net.TCPConn) { peer.Write([]byte("hello")) }
	reset := func(nc, peer *net.TCPConn) {
		peer.SetLinger(0)
		peer.Close()
	}
	for _, tt := range []struct {
		why           string
		before, after func(nc, peer *net.TCPConn)
		want          string
	}{
		{"bytes that are there", send, nothing, "hello"},
		{"bytes that come", nothing, send, "hello"},
		{"the peer's end, already", func(nc, peer *net.TCPConn) { peer.CloseWrite() }, nothing, "EOF"},
		{"the peer's end", nothing, func(nc, peer *net.TCPConn) { peer.Close() }, "EOF"},
		{"a reset", nothing, reset, "reset"},
		{"a deadline that has passed", func(nc, peer *net.TCPConn) { nc.SetReadDeadline(time.Unix(1, 0)) }, nothing, "timeout"},
		{"a deadline", func(nc, peer *net.TCPConn) { nc.SetDeadline(time.Now().Add(10 * time.Millisecond)) }, nothing, "timeout"},
		{"a deadline that is set later", nothing, func(nc, peer *net.TCPConn) { nc.SetReadDeadline(time.Unix(1, 0)) }, "timeout"},
		{"closed", nothing, func(nc, peer *net.TCPConn) { nc.Close() }, "closed"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			eachWay(t, func(t *testing.T, park parking) {
				nc, peer, raw := pair(t)
				tt.before(nc, peer)
				got := make(chan string, 2)
				if err := park(raw, false, func() { got <- outcome(nc) }); err != nil {
					t.Fatal(err)
				}
				tt.after(nc, peer)
				if got := servertest.Await(t, got, "a call"); got != tt.want {
					t.Errorf("Read returned %q, want %q", got, tt.want)
				}
			})
		})
	}
}

func TestNow(t *testing.T) {
	eachWay(t, func(t *testing.T, park parking) {
		nc, _, raw := pair(t)
		called := make(chan struct{}, 2)
		for range 2 { // it is not parked after the first
			if err := park(raw, true, func() { called <- struct{}{} }); err != nil {
				t.Fatal(err)
			}
			servertest.Await(t, called, "a call")
		}
		nc.Close()
	})
}

func TestClosedBefore(t *testing.T) {
	eachWay(t, func(t *testing.T, park parking) {
		nc, _, raw := pair(t)
		nc.Close()
		if err := park(raw, false, func() { t.Error("called") }); !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// TestAgain parks again and again, after each byte.
func TestAgain(t *testing.T) {
	eachWay(t, func(t *testing.T, park parking) {
		nc, peer, raw := pair(t)
		peer.SetDeadline(time.Now().Add(servertest.Patience))
		var running atomic.Bool
		var ready func()
		ready = func() {
			if running.Swap(true) {
				t.Error("called twice at the same time")
			}
			b := make([]byte, 1)
			if _, err := nc.Read(b); err != nil {
				nc.Close()
				return
			}
			nc.Write(b)
			running.Store(false)
			if err := park(raw, false, ready); err != nil {
				t.Error(err)
			}
		}
		if err := park(raw, false, ready); err != nil {
			t.Fatal(err)
		}
		c := servertest.Wrap(t, peer)
		for i := range 300 {
			c.Send("a")
			if i%3 == 0 {
				c.Send("bc")
				c.Want("abc")
			} else {
				c.Want("a")
			}
		}
		c.CloseWrite()
		c.Ended()
	})
}

// TestStress parks, sends, sets deadlines and closes at the same time: each successful
// call of Park is followed by exactly one call of its function.
func TestStress(t *testing.T) {
	eachWay(t, func(t *testing.T, park parking) {
		const conns, rounds = 40, 50
		var parked, called atomic.Int64
		var all sync.WaitGroup
		for i := range conns {
			nc, peer := servertest.TCPConns(t)
			raw := socket(t, nc)
			ended := make(chan struct{})
			var ready func()
			again := func() {
				parked.Add(1)
				if err := park(raw, false, ready); err != nil {
					parked.Add(-1)
					nc.Close()
					close(ended)
				}
			}
			ready = func() {
				called.Add(1)
				// Not on and on: a timeout stays until the deadline is changed.
				nc.SetReadDeadline(time.Now().Add(servertest.Patience))
				if _, err := nc.Read(make([]byte, 3)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
					nc.Close()
					close(ended)
					return
				}
				again()
			}
			again()
			all.Go(func() {
				for range rounds {
					if _, err := io.WriteString(peer, "hello"); err != nil {
						break
					}
				}
				switch i % 3 {
				case 0:
					peer.Close()
				case 1:
					nc.Close()
				}
				if i%3 != 2 {
					servertest.Await(t, ended, fmt.Sprint("the end of connection ", i))
				}
				peer.Close()
				servertest.Await(t, ended, fmt.Sprint("the end of connection ", i))
			})
			all.Go(func() {
				for range rounds {
					nc.SetReadDeadline(time.Unix(1, 0))
					nc.SetReadDeadline(time.Time{})
				}
			})
		}
		all.Wait()
		if p, c := parked.Load(), called.Load(); p != c {
			t.Errorf("parked %d times, called %d times", p, c)
		}
	})
}
