package link

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chert-http/chert/lab/lossy"
)

// far opens a link with a path, or skips where the right to it is missing.
func far(t *testing.T, p lossy.Path) *Link {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, for network namespaces and TUN devices")
	}
	l, err := Open(t.Context(), Options{MTU: 1500, Congestion: "cubic", Path: &p})
	if err != nil {
		t.Skip("no namespaces or TUN devices here: ", err) // root of a container may not have them
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// inside calls f on a thread in the link's namespace, which what it opens stays in.
func inside(t *testing.T, l *Link, f func() error) {
	t.Helper()
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		file, err := os.Open("/var/run/netns/" + l.name)
		if err == nil {
			defer file.Close()
			err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			err = f()
		}
		failed <- err
	}()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
}

// Each echo that is missing was counted as lost, and none is back before it has been there.
func TestLossyEchoes(t *testing.T) {
	const n, delay = 200, 20 * time.Millisecond // the least receive buffer that is usual has room for 256
	l := far(t, lossy.Path{Delay: delay, Loss: 0.05, Rate: 50e6, Queue: 1000, Seed: 1})
	c, err := net.DialIP("ip4:icmp", nil, &net.IPAddr{IP: net.ParseIP(l.Addr)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sent := make([]time.Time, n)
	for i := range n {
		sent[i] = time.Now()
		if _, err := c.Write(echo(uint16(i))); err != nil {
			t.Fatal(err)
		}
	}
	// Each is either lost or comes back. To wait for either the reading is interrupted.
	got := 0
	for last, end := -1, time.Now().Add(20*time.Second); got+int(l.Counts().Lost) < n && time.Now().Before(end); {
		b := make([]byte, 1500)
		c.SetReadDeadline(time.Now().Add(delay))
		m, _, err := c.ReadFromIP(b) // without the header of IP
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if m < 8 || b[0] != 0 || binary.BigEndian.Uint16(b[4:]) != echoID { // somebody else's
			continue
		}
		i := int(binary.BigEndian.Uint16(b[6:]))
		if i <= last || i >= n {
			t.Fatalf("echo %d after %d", i, last)
		}
		if took := time.Since(sent[i]); took < 2*delay {
			t.Errorf("echo %d took %v", i, took)
		}
		last = i
		got++
	}
	counts := l.Counts()
	if counts.Lost == 0 || got+int(counts.Lost) != n || counts.Full != 0 {
		t.Errorf("%d of %d came back: %v", got, n, counts)
	}
}

const echoID = 0x4c61

// echo is a request of ICMP (RFC 792).
func echo(number uint16) []byte {
	b := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16([]byte{8, 0, 0, 0}, echoID), number)
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	binary.BigEndian.PutUint16(b[2:], ^uint16(sum+sum>>16))
	return b
}

// What TCP carries is whole, although segments are lost.
func TestLossyTCP(t *testing.T) {
	l := far(t, lossy.Path{Delay: 2 * time.Millisecond, Loss: 0.02, Rate: 100e6, Queue: 100, Seed: 1})
	var listener net.Listener
	inside(t, l, func() (err error) {
		listener, err = net.Listen("tcp4", net.JoinHostPort(l.Addr, "0"))
		return err
	})
	defer listener.Close()
	want := make([]byte, 1<<20)
	rand.Read(want)
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.Write(want)
	}()
	c, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	// Segments of the MTU, and nothing larger, which would be fewer.
	if counts := l.Counts(); counts.Lost == 0 || counts.Passed < int64(len(want)/1500) {
		t.Error(counts)
	}
}

// A datagram of several segments is divided by the kernel: each crosses by itself.
func TestLossySegments(t *testing.T) {
	l := far(t, lossy.Path{Rate: 100e6, Queue: 100})
	var at *net.UDPConn
	inside(t, l, func() (err error) {
		at, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(l.Addr)})
		return err
	})
	defer at.Close()
	c, err := net.DialUDP("udp4", nil, at.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const segments, size = 20, 1252
	want := make([]byte, segments*size)
	rand.Read(want)
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, size) })
	if err != nil {
		t.Skip("the kernel does not divide datagrams: ", err)
	}
	if _, err := c.Write(want); err != nil {
		t.Fatal(err)
	}
	for i := range segments {
		b := make([]byte, len(want))
		at.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, err := at.Read(b)
		if err != nil || !bytes.Equal(b[:n], want[i*size:(i+1)*size]) {
			t.Fatalf("segment %d: %d bytes, %v", i, n, err)
		}
	}
	if counts := l.Counts(); counts.Passed != segments {
		t.Error(counts)
	}
}
