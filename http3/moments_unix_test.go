//go:build linux || darwin

package http3_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/chert-http/chert/internal/testing/http3client"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// This file is what is under way at the very moment of an upgrade: the first packets have come to one process, and the
// next ones come to another.

// asking is a client whose first request waits for a handshake that a relay keeps from ending.
type asking struct {
	relay  *relay
	dialed atomic.Int32 // handshakes that have ended, for the client
	answer chan string
	err    error
}

// ask has a client ask for the process of a line, through a relay that holds what is selected.
func (l *line) ask(hold func(p []byte) bool) *asking {
	l.t.Helper()
	a := &asking{relay: newRelay(l.t, l.addr), answer: make(chan string, 1)}
	a.relay.hold(hold)
	d := dialer(l.t)
	tr := &http3.Transport{
		TLSClientConfig: clientTLS(), QUICConfig: &quic.Config{HandshakeIdleTimeout: servertest.Patience},
		Dial: func(ctx context.Context, _ string, of *tls.Config, o *quic.Config) (*quic.Conn, error) {
			c, err := d.Dial(ctx, a.relay.client.LocalAddr(), of, o)
			if err == nil {
				a.dialed.Add(1)
			}
			return c, err
		},
	}
	l.t.Cleanup(func() { tr.Close() })
	c := &http.Client{Transport: http3client.Transport{Transport: tr}, Timeout: servertest.Patience}
	go func() {
		defer close(a.answer)
		res, err := c.Get(l.url("/pid"))
		if err != nil {
			a.err = err
			return
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if a.err = err; err == nil {
			a.answer <- strings.TrimSpace(string(b))
		}
	}()
	return a
}

// held waits until something is held, and the server has said something.
func (a *asking) held(t *testing.T) {
	t.Helper()
	servertest.Eventually(t, "the relay holds what it is to hold", func() bool {
		holds, heard := a.relay.state()
		return holds && heard
	})
}

// answered lets everything pass, and checks that the request is served by the process that is to have the handshake or,
// if that has had time to say that it goes away, by the next one, on another connection.
func (a *asking) answered(t *testing.T, by, next int) {
	t.Helper()
	a.relay.release()
	got := servertest.Await(t, a.answer, "the answer")
	dialed := a.dialed.Load()
	if dialed == 1 && got == strconv.Itoa(by) || dialed == 2 && got == strconv.Itoa(next) {
		return
	}
	t.Errorf("%q, %v, after %d handshakes; the processes are %d and %d", got, a.err, dialed, by, next)
}

// A handshake ends in the process where it has begun.
func TestUpgradeWithinHandshake(t *testing.T) {
	t.Parallel()
	datagrams := 0
	for name, hold := range map[string]func(p []byte) bool{
		"the second flight": completes,
		// It is in two datagrams, as the key that it offers is large.
		"the rest of the first message": func([]byte) bool { datagrams++; return datagrams > 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := startLine(t, plainLine)
			pid := pidOf(t, l.raw())
			a := l.ask(hold)
			a.held(t)
			next := l.upgrade(pid)
			a.answered(t, pid, next)
			l.wants("ended: <nil>")
			syscall.Kill(next, syscall.SIGTERM)
			l.finish()
		})
	}
}

// A client that the old process has asked to show its address does so to that, or if it has ended to the new one.
func TestUpgradeWithinRetry(t *testing.T) {
	t.Parallel()
	for _, ended := range []bool{false, true} {
		t.Run(map[bool]string{false: "the old one is there", true: "it has ended"}[ended], func(t *testing.T) {
			t.Parallel()
			l := startLine(t, crowdedLine)
			g := l.guest()
			var crowd []*raw
			for range crowdedConns - 2 {
				c := l.raw()
				pidOf(t, c)
				crowd = append(crowd, c)
			}
			a := l.ask(hasToken)
			a.held(t)
			for _, c := range crowd {
				c.CloseWithError(0x100, "")
			}
			by := g.pid
			next := l.upgrade(g.pid)
			if ended {
				g.CloseWithError(0x100, "")
				l.wants("ended: <nil>")
				by = next
			}
			a.answered(t, by, next)
			if !ended {
				g.finish()
				g.CloseWithError(0x100, "")
				l.wants("ended: <nil>")
			}
			syscall.Kill(next, syscall.SIGTERM)
			l.finish()
		})
	}
}

// A ticket of the old process gives no early data at the new one: what was sent early is sent again, and the session is
// resumed, as both have the same keys.
func TestUpgradeTicket(t *testing.T) {
	t.Parallel()
	l := startLine(t, earlyLine)
	pid := pidOf(t, l.raw())
	c := l.returns(true)
	next := l.upgrade(pid)
	c.quic.HandshakeIdleTimeout = servertest.Patience
	c.relay.hold(completes)
	c.relay.mute()
	conn := c.dial()
	send := func() (all []*exchange) {
		for _, method := range []string{"GET", "POST"} {
			all = append(all, conn.open(true, headers(asks(method, "/pid")...)))
		}
		return all
	}
	send()
	servertest.Eventually(t, "early data is sent", c.relay.hasEarly)
	c.relay.unmute()
	if !conn.rejected() {
		t.Error("a ticket of another process gives early data")
	}
	if !conn.ConnectionState().TLS.DidResume {
		t.Error("the session is not resumed")
	}
	c.relay.release()
	for _, e := range send() {
		if a := e.read(); a.ending() != "200" || strings.TrimSpace(a.body) != strconv.Itoa(next) {
			t.Errorf("%+v, want process %d", a, next)
		}
	}
	conn.CloseWithError(0x100, "")
	syscall.Kill(next, syscall.SIGTERM)
	l.finish()
}

// Requests that have come early to the old process are served by it, those too that wait for the handshake's end.
func TestUpgradeWithinEarlyData(t *testing.T) {
	t.Parallel()
	l := startLine(t, earlyLine)
	pid := pidOf(t, l.raw())
	c := l.returns(true)
	c.quic.HandshakeIdleTimeout = servertest.Patience
	c.relay.hold(completes)
	c.relay.mute()
	conn := c.dial()
	post, get := conn.open(true, headers(asks("POST", "/pid")...)), conn.open(true, headers(asks("GET", "/pid")...))
	servertest.Eventually(t, "early data is sent", c.relay.hasEarly)
	c.relay.unmute()
	served := func(e *exchange) {
		t.Helper()
		if a := e.read(); a.ending() != "200" || strings.TrimSpace(a.body) != strconv.Itoa(pid) {
			t.Errorf("%+v, want process %d", a, pid)
		}
	}
	served(get) // by what came early: the rest is held
	next := l.upgrade(pid)
	c.relay.release()
	served(post)
	if !conn.ConnectionState().Used0RTT {
		t.Error("it was not early")
	}
	conn.CloseWithError(0x100, "")
	l.wants("ended: <nil>")
	syscall.Kill(next, syscall.SIGTERM)
	l.finish()
}
