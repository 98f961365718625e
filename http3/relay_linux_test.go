//go:build linux

package http3

import (
	"bytes"
	"errors"
	"net"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"golang.org/x/net/ipv4"

	"github.com/chert-http/chert/internal/successor"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/internal/testing/servertest"
)

const patience = 20 * time.Second

func udp(t testing.TB) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(patience))
	return c
}

// pair returns the two ends of what leads to a process.
func pair(t testing.TB) (own, other *net.UnixConn) {
	t.Helper()
	own, fd, err := successor.Pair()
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "other")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	other = c.(*net.UnixConn)
	t.Cleanup(func() { own.Close(); other.Close() })
	own.SetReadDeadline(time.Now().Add(patience))
	return own, other
}

// process is a relay, and what it reads.
type process struct {
	*relay
	t     testing.TB
	ms    []ipv4.Message
	alone chan struct{}
}

// newProcess starts one of a generation. older are the ways to those before it.
func newProcess(t testing.TB, c *net.UDPConn, generation byte, older map[byte]*net.UnixConn) *process {
	t.Helper()
	p := &process{t: t, alone: make(chan struct{}, 1)}
	var ways []way
	for g, c := range older {
		w, err := newWay(g, c)
		if err != nil {
			t.Fatal(err)
		}
		ways = append(ways, w)
	}
	p.relay = newRelay(c, newConnIDs(&idKey{1, 2, 3}, generation), ways, func() { p.alone <- struct{}{} })
	p.tally = new(tally.Shard)
	t.Cleanup(func() { p.Close() })
	for range 8 {
		p.ms = append(p.ms, ipv4.Message{Buffers: [][]byte{make([]byte, 1452)}, OOB: make([]byte, 128)})
	}
	p.SetReadDeadline(time.Now().Add(patience))
	return p
}

// id makes one of a generation, for any process.
func id(t testing.TB, generation byte) []byte {
	t.Helper()
	made, err := newConnIDs(&idKey{1, 2, 3}, generation).GenerateConnectionID()
	if err != nil {
		t.Fatal(err)
	}
	return made.Bytes()
}

// gets reads packets up to the last one, and compares them and their sender with what is wanted.
func (p *process) gets(from net.Addr, last []byte, want ...[]byte) {
	p.t.Helper()
	var got [][]byte
	for {
		n, err := p.ReadBatch(p.ms, 0)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, m := range p.ms[:n] {
			if m.Addr.String() != from.String() {
				p.t.Errorf("a packet of %v, not %v", m.Addr, from)
			}
			b := bytes.Clone(m.Buffers[0][:m.N])
			if bytes.Equal(b, last) {
				if !slices.EqualFunc(got, want, bytes.Equal) {
					p.t.Errorf("got %q, want %q", got, want)
				}
				return
			}
			got = append(got, b)
		}
	}
}

func short(id []byte) []byte { return slices.Concat([]byte{0x41}, id, []byte("payload")) }

// long is a packet with a long header. kind 0 is Initial, 1 0-RTT, 2 Handshake, 3 Retry.
func long(kind byte, version byte, id []byte) []byte {
	return slices.Concat([]byte{0xc0 | kind<<4, 0, 0, 0, version, byte(len(id))}, id, []byte("\x00payload"))
}

// Packets of an older process's connections go there, and all others stay.
func TestDestinations(t *testing.T) {
	t.Parallel()
	forged := bytes.Clone(id(t, 1))
	forged[idLength-1] ^= 1
	wrong, err := newConnIDs(&idKey{4}, 1).GenerateConnectionID()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		packet []byte
		away   bool
	}{
		{"short, older", short(id(t, 1)), true},
		{"short, oldest", short(id(t, 0)), false}, // nothing leads there any more
		{"short, own", short(id(t, 2)), false},
		{"short, later", short(id(t, 3)), false},
		{"short, forged", short(forged), false},
		{"short, of another key", short(wrong.Bytes()), false},
		{"short, the ID alone", short(id(t, 1))[:1+idLength], true},
		{"short, less than the ID", short(id(t, 1))[:idLength], false},
		{"without the fixed bit", append([]byte{1}, id(t, 1)...), false},
		{"Initial, older", long(0, 1, id(t, 1)), true}, // the second packet of a handshake
		{"0-RTT, older", long(1, 1, id(t, 1)), true},
		{"Handshake, older", long(2, 1, id(t, 1)), true},
		{"Handshake, version 2, older", long(2, 2, id(t, 1)), true},
		{"Handshake, own", long(2, 1, id(t, 2)), false},
		{"Handshake, the ID alone", long(2, 1, id(t, 1))[:6+idLength], true},
		{"Handshake, less than the ID", long(2, 1, id(t, 1))[:5+idLength], false},
		{"Handshake, ID with a byte more", long(2, 1, append(id(t, 1), 0)), false},
		{"Initial, random ID of 8 bytes", long(0, 1, []byte("12345678")), false},
		{"Initial, random ID of 12 bytes", long(0, 1, []byte("123456789012")), false},
		{"Initial, no ID", long(0, 1, nil), false},
		{"version negotiation", long(0, 0, []byte("12345678")), false},
		{"a length of 255", []byte{0xc0, 0, 0, 0, 1, 255, 0, 0}, false},
		{"less than a long header", []byte{0xc0, 0, 0, 0, 1}, false},
		{"one byte", []byte{0x40}, false},
		{"empty", nil, false},
		{"garbage", bytes.Repeat([]byte{0xff}, 1452), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			to, from := udp(t), udp(t)
			own, other := pair(t)
			reads := newProcess(t, to, 2, map[byte]*net.UnixConn{1: other})
			last := []byte("\x40last")
			for _, b := range [][]byte{tt.packet, last} {
				if _, err := from.WriteTo(b, to.LocalAddr()); err != nil {
					t.Fatal(err)
				}
			}
			if !tt.away {
				reads.gets(from.LocalAddr(), last, tt.packet)
				return
			}
			reads.gets(from.LocalAddr(), last)
			var b [maxEnvelope]byte
			n, err := own.Read(b[:])
			m := ipv4.Message{Buffers: [][]byte{make([]byte, 1452)}, OOB: make([]byte, 128)}
			if err != nil || !open(&m, b[:n]) {
				t.Fatalf("%q, %v", b[:n], err)
			}
			if m.Addr.String() != from.LocalAddr().String() || !bytes.Equal(m.Buffers[0][:m.N], tt.packet) {
				t.Errorf("%q of %v", m.Buffers[0][:m.N], m.Addr)
			}
		})
	}
}

// In a batch of both kinds, what stays keeps its order, its bytes and the buffer of its place.
func TestBatchIsCompacted(t *testing.T) {
	t.Parallel()
	to, from := udp(t), udp(t)
	own, other := pair(t)
	reads := newProcess(t, to, 2, map[byte]*net.UnixConn{1: other})
	buffers := make([]*byte, len(reads.ms))
	for i, m := range reads.ms {
		buffers[i] = &m.Buffers[0][0]
	}
	var stay, away [][]byte
	for i := range 50 {
		b := append(short(id(t, byte(1+i%3/2))), bytes.Repeat([]byte{byte(i)}, 20*i)...)
		if i%3/2 == 1 {
			b = append(short(id(t, 2)), bytes.Repeat([]byte{byte(i)}, 20*i)...)
			stay = append(stay, b)
		} else {
			away = append(away, b)
		}
		if _, err := from.WriteTo(b, to.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	last := []byte("\x40last")
	from.WriteTo(last, to.LocalAddr())
	reads.gets(from.LocalAddr(), last, stay...)
	for i, m := range reads.ms {
		if &m.Buffers[0][0] != buffers[i] {
			t.Errorf("message %d has another buffer", i)
		}
	}
	old := newProcess(t, udp(t), 1, nil)
	old.from.Store(own) // its messages are read as those of a process that was replaced
	other.Write(appendEnvelope(nil, &ipv4.Message{Addr: from.LocalAddr(), Buffers: [][]byte{last}, N: len(last)}))
	old.gets(from.LocalAddr(), last, away...)
}

// run reads all the time. The channel is closed when the process has ended.
func (p *process) run() chan string {
	all := make(chan string, 100)
	go func() {
		defer close(all)
		for {
			n, err := p.ReadBatch(p.ms, 0)
			if err != nil {
				return
			}
			for _, m := range p.ms[:n] {
				all <- string(m.Buffers[0][:m.N])
			}
		}
	}()
	return all
}

// A process that was replaced reads what its successor passes on, and the socket again when that has
// ended; so does one before it when both have.
func TestTurns(t *testing.T) {
	t.Parallel()
	to, from := udp(t), udp(t)
	own0, to0 := pair(t)
	own1, to1 := pair(t)
	f, err := to0.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	inherited, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	expect := func(generation byte, by chan string) {
		t.Helper()
		b := short(id(t, generation))
		if _, err := from.WriteTo(b, to.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-by:
			if got != string(b) {
				t.Fatalf("got %q, want %q", got, b)
			}
		case <-time.After(patience):
			t.Fatal("nothing comes")
		}
	}
	p0 := newProcess(t, share(t, to), 0, nil)
	zero := p0.run()
	expect(0, zero)
	expect(9, zero)
	p0.leave(own0)
	p1 := newProcess(t, share(t, to), 1, map[byte]*net.UnixConn{0: to0})
	one := p1.run()
	expect(1, one)
	expect(0, zero)
	p1.leave(own1)
	p2 := newProcess(t, share(t, to), 2, map[byte]*net.UnixConn{0: inherited.(*net.UnixConn), 1: to1})
	two := p2.run()
	for range 2 {
		expect(0, zero)
		expect(1, one)
		expect(2, two)
		expect(9, two)
	}
	p2.Close()
	<-two
	<-p1.alone
	expect(0, zero)
	expect(1, one)
	expect(2, one) // whose transport knows no connection, and says so
	p1.Close()
	<-one
	<-p0.alone
	expect(0, zero)
	expect(1, zero)
}

// The way to a process that has ended is forgotten, without a packet that goes there.
func TestWaysEnd(t *testing.T) {
	t.Parallel()
	to, from := udp(t), udp(t)
	own, other := pair(t)
	p := newProcess(t, to, 1, map[byte]*net.UnixConn{0: other})
	if len(p.ways()) != 1 {
		t.Error("there is no way")
	}
	own.Close()
	servertest.Eventually(t, "the way is gone", func() bool { return p.ways() == nil })
	last := short(id(t, 0))
	from.WriteTo(last, to.LocalAddr())
	p.gets(from.LocalAddr(), last)
}

// share is the socket in another process.
func share(t testing.TB, c *net.UDPConn) *net.UDPConn {
	t.Helper()
	f, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	other, err := net.FilePacketConn(f)
	if err != nil {
		t.Fatal(err)
	}
	return other.(*net.UDPConn)
}

// Whatever comes in an envelope is a message that was put in, or is dropped.
func FuzzEnvelope(f *testing.F) {
	for _, m := range []ipv4.Message{
		{Addr: &net.UDPAddr{IP: net.IP{127, 0, 0, 1}, Port: 443}, Buffers: [][]byte{[]byte("packet")}, N: 6},
		{Addr: &net.UDPAddr{IP: net.IPv6loopback, Port: 1, Zone: "eth0"}, Buffers: [][]byte{{}}, OOB: []byte("oob"), NN: 3},
	} {
		f.Add(appendEnvelope(nil, &m))
	}
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		fresh := func() ipv4.Message {
			return ipv4.Message{Buffers: [][]byte{make([]byte, 1452)}, OOB: make([]byte, 128)}
		}
		m, again := fresh(), fresh()
		if !open(&m, b) {
			return
		}
		if d := destination(m.Buffers[0][:m.N]); d != nil && !bytes.Contains(m.Buffers[0][:m.N], d) {
			t.Errorf("destination %x of %x", d, m.Buffers[0][:m.N])
		}
		if !open(&again, appendEnvelope(nil, &m)) || !reflect.DeepEqual(m, again) {
			t.Errorf("%v became %v", m, again)
		}
	})
}

// Ended reads end as quic-go expects it.
func TestReadEnds(t *testing.T) {
	t.Parallel()
	p := newProcess(t, udp(t), 0, nil)
	own, _ := pair(t)
	for range 2 {
		p.SetReadDeadline(time.Unix(1, 0))
		if n, err := p.ReadBatch(p.ms, 0); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d, %v", n, err)
		}
		p.from.Store(own)
	}
	p.Close()
	if n, err := p.ReadBatch(p.ms, 0); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %d, %v", n, err)
	}
	<-p.away
}
