package accept

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
)

// A listener is opened again on its address, once for each loop, and is an ordinary one
// until then.
func TestListenerSockets(t *testing.T) {
	t.Parallel()
	if !sys.HavePoller {
		t.Skip("no loops")
	}
	l, err := Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if again, err := Listen("tcp", l.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
		again.Close()
		t.Errorf("the address can be taken by accident: %v", err)
	}
	fds, err := l.sockets(3)
	if err != nil || len(fds) != 3 {
		t.Fatalf("%d sockets, %v", len(fds), err)
	}
	closeAll(fds)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

// A listener of several sockets accepts from each of them, passes all of them on, and opens no
// more than loops need.
func TestInherited(t *testing.T) {
	t.Parallel()
	if !sys.HavePoller {
		t.Skip("no loops")
	}
	before, err := Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fds, err := before.sockets(3)
	if err != nil {
		t.Fatal(err)
	}
	before.Close()
	l, err := Inherit("tcp", fds, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	copies, err := l.Sockets()
	if err != nil || len(copies) != 3 {
		t.Fatalf("%d sockets, %v", len(copies), err)
	}
	closeAll(copies)
	// Each has connections, as the kernel spreads them by the clients' ports.
	const dials = 60
	for range dials {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	for range dials {
		nc, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		nc.Close()
	}
	copies, err = l.Sockets()
	if err != nil || len(copies) != 3 {
		t.Errorf("while it accepts: %d sockets, %v", len(copies), err)
	}
	next, err := Inherit("tcp", copies, nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := next.sockets(2)
	if err != nil || len(all) != 3 {
		t.Errorf("%d sockets for two loops, %v", len(all), err)
	}
	closeAll(all)
	next.Close()
	l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if _, err := l.Sockets(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// A set whose pollers cannot all be opened leaves none.
func TestNewSetFails(t *testing.T) {
	t.Parallel()
	if !sys.HavePoller {
		t.Skip("no loops")
	}
	n := 0
	set, err := NewSet(3, func() (poll.Poller, error) {
		if n++; n == 3 {
			return nil, syscall.EMFILE
		}
		return poll.New(nil)
	})
	if set != nil || !errors.Is(err, syscall.EMFILE) {
		t.Errorf("got %v, %v", set, err)
	}
}

// What a connection beyond the limits receives is a response, or an alert.
func TestRefusals(t *testing.T) {
	t.Parallel()
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(Refusal())), nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") != "1" || !res.Close {
		t.Errorf("got %v", res)
	}
	if a := Alert(); len(a) != 7 || !strings.HasPrefix(string(a), "\x15\x03\x03") {
		t.Errorf("got %x", a)
	}
}

// clockLink is as much of a Link as the end of a wait uses.
type clockLink struct {
	conn.Link
	now, by int64
}

func (l *clockLink) Now() int64           { return l.now }
func (l *clockLink) SetDeadline(ns int64) { l.by = ns }

// A proxy whose header is late is logged; a server that stops logs none.
func TestPreambleExpires(t *testing.T) {
	t.Parallel()
	const accepted = 1000
	for _, tt := range []struct {
		drained int64 // 0 for not
		by      int64
		log     string
	}{
		{0, accepted + int64(proxyHeaderTimeout), "chert: PROXY protocol error from 192.0.2.1:1: i/o timeout"},
		{accepted, accepted + int64(conn.DrainNew), ""},
		{accepted + int64(proxyHeaderTimeout) - 1, accepted + int64(proxyHeaderTimeout),
			"chert: PROXY protocol error from 192.0.2.1:1: i/o timeout"},
	} {
		log := ""
		l := new(clockLink)
		s := &preamble{link: l, proxy: "192.0.2.1:1", accepted: accepted, Accept: &loop.Accept{
			Log: func(format string, args ...any) { log += fmt.Sprintf(format, args...) }}}
		if l.by = s.deadline(); tt.drained > 0 {
			s.Drain(tt.drained)
		}
		l.now = l.by
		if next := s.Expired(); next != conn.Close || l.by != tt.by || log != tt.log {
			t.Errorf("drained at %d: %d at %d, log %q", tt.drained, next, l.by, log)
		}
	}
}
