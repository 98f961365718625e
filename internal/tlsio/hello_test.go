package tlsio

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/peer"
)

// clientHello is what a client of crypto/tls sends first.
func clientHello(t testing.TB, cfg *tls.Config) []byte {
	t.Helper()
	stop := errors.New("stop")
	m := &wire{below: &below{end: stop}}
	cfg = cfg.Clone()
	cfg.InsecureSkipVerify = true
	if err := tls.Client(m, cfg).Handshake(); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	return m.out
}

// record makes one.
func record(kind byte, p string) string {
	return string([]byte{kind, 3, 1, byte(len(p) >> 8), byte(len(p))}) + p
}

// inRecords puts a message into records of n bytes.
func inRecords(msg string, n int) string {
	var s strings.Builder
	for len(msg) > 0 {
		k := min(n, len(msg))
		s.WriteString(record(recordHandshake, msg[:k]))
		msg = msg[k:]
	}
	return s.String()
}

var errMore = errors.New("crypto/tls waits for more")

// judge is what crypto/tls makes of a client's first bytes.
func judge(b []byte) verdict {
	seen := errors.New("it has the ClientHello")
	m := &wire{below: &below{in: b, end: errMore}}
	err := tls.Server(m, &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return nil, seen
	}}).Handshake()
	switch {
	case errors.Is(err, errMore):
		return incomplete
	case errors.Is(err, seen):
		return complete
	}
	return hopeless
}

// agrees checks the verdict on b, and that it is the same when b comes in pieces. A
// ClientHello that crypto/tls finds malformed is complete all the same.
func agrees(t *testing.T, b []byte, pieces func() int) (got verdict) {
	t.Helper()
	var h hello
	got = h.scan(b)
	if want := judge(b); got != want && (got != complete || want != hopeless) && len(b) <= maxFlight {
		t.Fatalf("%.200q: got %d, want %d", b, got, want)
	}
	var p hello
	for n := 0; n < len(b); {
		n = min(n+pieces(), len(b))
		v := p.scan(b[:n])
		if v == incomplete && (len(b) < 200 || n%509 == 0) { // and after a squeeze
			q := p
			if got := judge(append(q.squeeze(b[:n]), b[n:]...)); got != judge(b) && len(b) <= maxFlight {
				t.Fatalf("%.200q squeezed after %d: %d", b, n, got)
			}
		}
		if n == len(b) && v != got && len(b) <= maxFlight {
			t.Fatalf("%.200q in pieces: %d, whole: %d", b, v, got)
		}
		if v != incomplete {
			return got
		}
	}
	return got
}

func one() int { return 1 }

func TestHello(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]*tls.Config{
		"as it is": {ServerName: "example.com"},
		"TLS 1.2":  {ServerName: "example.com", MaxVersion: tls.VersionTLS12},
		"small":    {CurvePreferences: []tls.CurveID{tls.X25519}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := string(clientHello(t, cfg))
			msg := whole[headerSize:]
			for _, n := range []int{1, 2, 3, 4, 5, 100, len(msg) - 1, len(msg)} {
				all := []byte(inRecords(msg, n))
				var h hello
				for i := range len(all) {
					if v := h.scan(all[:i]); v != incomplete {
						t.Fatalf("records of %d: %d after %d of %d bytes", n, v, i, len(all))
					}
				}
				if v := h.scan(all); v != complete {
					t.Errorf("records of %d: %d", n, v)
				}
				agrees(t, all, one)
				agrees(t, append(all, "what follows"...), one)
			}
		})
	}
}

func TestHelloRefused(t *testing.T) {
	t.Parallel()
	hello := string(clientHello(t, &tls.Config{ServerName: "example.com"}))
	warning := record(recordAlert, "\x01\x5a")
	long := strings.Repeat("x", maxHello+100)
	for _, tt := range []struct {
		name, in string
		want     verdict
	}{
		{"nothing", "", incomplete},
		{"four bytes", "GET ", incomplete},
		{"plain HTTP", "GET / HTTP/1.1\r\n\r\n", hopeless},
		{"plain HTTP, five bytes", "GET /", hopeless},
		{"SSL 2", "\x80\x2e\x01\x00\x02", hopeless},
		{"a type that there is not", "\x19\x03\x01\x00\x01x", hopeless},
		{"data", record(23, "x"), hopeless},
		{"change_cipher_spec", record(20, "\x01"), hopeless},
		{"a version that there is not", "\x16\x10\x00\x00\x01", hopeless},
		{"an empty record", record(recordHandshake, ""), hopeless},
		{"a record that is too long", "\x16\x03\x01\x48\x01", hopeless},
		{"as long as can be", "\x16\x03\x01\x48\x00", incomplete},
		{"and too long for plaintext", record(recordHandshake, strings.Repeat("\x01", maxPlain+1)), hopeless},
		{"another message", record(recordHandshake, "\x02\x00\x00\x01x"), hopeless},
		{"a part of another message", record(recordHandshake, "\x02\x00\x00\x02x"), incomplete},
		{"a message that is too long", record(recordHandshake, "\x01\x01\x00\x01"), hopeless},
		{"as long as can be, a part", record(recordHandshake, "\x01\x01\x00\x00"), incomplete},
		{"as long as can be", inRecords("\x01\x01\x00\x00"+long[:maxHello], maxPlain), complete},
		{"nonsense of the right length", record(recordHandshake, "\x01\x00\x00\x02xx"), complete},
		{"a warning before", warning + hello, complete},
		{"warnings before", strings.Repeat(warning, maxWarnings) + hello, complete},
		{"too many warnings", strings.Repeat(warning, maxWarnings+1), hopeless},
		{"a fatal alert", record(recordAlert, "\x02\x5a"), hopeless},
		{"close_notify", record(recordAlert, "\x01\x00"), hopeless},
		{"an alert that is none", record(recordAlert, "\x01"), hopeless},
		{"too much in small records", inRecords("\x01\x01\x00\x00"+long[:maxHello-1], 1), incomplete}, // see TestHelloTooMuch
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			piece := 1 + len(tt.in)/5000
			if got := agrees(t, []byte(tt.in), func() int { return piece }); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// What is scanned is judged as crypto/tls judges it, however it comes.
func FuzzHello(f *testing.F) {
	hello := clientHello(f, &tls.Config{ServerName: "example.com", CurvePreferences: []tls.CurveID{tls.X25519}})
	f.Add(hello, uint64(1))
	f.Add([]byte(inRecords(string(hello[headerSize:]), 1)), uint64(2))
	f.Add([]byte(record(recordAlert, "\x01\x5a")+string(hello)), uint64(3))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), uint64(4))
	f.Add(bytes.Repeat([]byte(record(recordAlert, "\x01\x5a")), 20), uint64(5))
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		agrees(t, b, func() int { return 1 + rnd.IntN(20) })
	})
}

func TestWhole(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int{
		"": 0, "\x17\x03\x03\x00": 0, "\x17\x03\x03\x00\x01": 0, "\x17\x03\x03\x00\x01x": 6, "\x17\x03\x03\x00\x01xy": 6,
		"\x17\x03\x03\x00\x00": 5, "\x17\x03\x03\xff\xff": 5, "\x17\x03\x03\x48\x01": 5, "\x17\x03\x03\x48\x00": 0,
	} {
		if got := whole([]byte(in)); got != want {
			t.Errorf("%q: got %d, want %d", in, got, want)
		}
	}
}

// heldLink is as much of a Link as a Handshake uses that waits for the ClientHello.
type heldLink struct {
	conn.Link
	in []byte
}

func (l *heldLink) Peer() peer.Peer  { return peer.Parse("192.0.2.1:1") }
func (l *heldLink) Buffered() []byte { return l.in }
func (l *heldLink) Discard(n int)    { l.in = l.in[n:] }
func (l *heldLink) OnLoop() bool     { return true }
func (l *heldLink) Lent() conn.Lent  { return heldLent{l: l} }

type heldLent struct {
	conn.Lent
	l *heldLink
}

func (h heldLent) Unread(p []byte) { h.l.in = append(bytes.Clone(p), h.l.in...) }

// What is kept of a ClientHello is bounded by its length, however it is divided, and remains
// the same message to crypto/tls.
func TestHelloSqueezed(t *testing.T) {
	t.Parallel()
	warning := record(recordAlert, "\x01\x5a")
	largest := "\x01\x01\x00\x00" + strings.Repeat("x", maxHello)
	usual := string(clientHello(t, &tls.Config{ServerName: "example.com"})[headerSize:])
	const header = "\x16\x03\x01\x00\x14"
	warned := strings.ReplaceAll(inRecords(usual, 0x14), header, strings.Repeat(warning, maxWarnings)+header)
	for name, tt := range map[string]struct {
		in   string
		most int
	}{
		"largest in single bytes":    {inRecords(largest, 1), 3*maxHello/2 + maxWaste},
		"largest in pieces":          {inRecords(largest, 7), 3*maxHello/2 + maxWaste},
		"largest in whole records":   {inRecords(largest, maxPlain), maxHello + 100},
		"usual in single bytes":      {inRecords(usual, 1), len(usual) + maxWaste + 100},
		"usual with warnings":        {warned, len(usual) + maxWaste + 100},
		"usual with warnings before": {strings.Repeat(warning, maxWarnings) + inRecords(usual, 1), len(usual) + maxWaste + 200},
	} {
		b := &Bound{Slots: 1, Goroutines: 1, watching: true} // no timer takes the slot
		first, _, _ := joins(b)
		l := new(heldLink)
		h := &Handshake{cfg: &Config{Bound: b}, link: l}
		most := 0
		for i := range len(tt.in) {
			if h.awaited() {
				t.Fatalf("%s: complete after %d of %d bytes", name, i, len(tt.in))
			}
			l.in = append(l.in, tt.in[i])
			if next := h.Data(false); next != conn.More {
				t.Fatalf("%s: %v after %d bytes", name, next, i+1)
			}
			most = max(most, len(l.in))
		}
		if !h.awaited() {
			t.Errorf("%s: not complete", name)
		}
		if most > tt.most {
			t.Errorf("%s: %d bytes were kept, want at most %d", name, most, tt.most)
		}
		if got := judge(l.in); strings.HasPrefix(name, "usual") && got != complete {
			t.Errorf("%s: crypto/tls says %d", name, got)
		}
		b.leave(h)
		b.leave(first)
	}
}

// More than maxFlight is refused before the ClientHello is complete, whether crypto/tls would wait for more of it or not.
func TestHelloTooMuch(t *testing.T) {
	t.Parallel()
	unfinished := inRecords("\x01\x01\x00\x00"+strings.Repeat("x", maxHello-1), 1)
	for _, tt := range []struct {
		name, in string
		err      error
	}{
		{"unfinished", unfinished, errTooMuch},
		{"the most, unfinished", unfinished[:maxFlight], nil},
		{"hopeless", unfinished[:maxFlight] + strings.Repeat("GET / ", 100), errTooMuch},
	} {
		var failed error
		l := &heldLink{in: []byte(tt.in)}
		h := &Handshake{link: l, cfg: &Config{Bound: new(Bound), Failed: func(_ conn.Link, _ *tls.Conn, err error) []byte {
			failed = err
			return nil
		}}}
		if next := h.Data(false); failed != tt.err || next == conn.Close != (tt.err != nil) {
			t.Errorf("%s: %d and %v, want %v", tt.name, next, failed, tt.err)
		}
	}
}

// A client that leaves while it waits for its turn, or sends more than a handshake has, gives its place back.
func TestHelloAwaits(t *testing.T) {
	t.Parallel()
	hello := clientHello(t, &tls.Config{ServerName: "example.com"})
	for _, tt := range []struct {
		why  string
		more int // bytes that follow
		eof  bool
		next conn.Next
		err  error
	}{
		{"nothing", 0, false, conn.More, nil},
		{"more", 100, false, conn.More, nil},
		{"too much", maxFlight, false, conn.Close, errTooMuch},
		{"the end", 0, true, conn.Close, io.EOF},
	} {
		b := &Bound{Slots: 1, Goroutines: 1, watching: true} // no timer takes the slot
		first, _, _ := joins(b)
		var failed error
		l := &heldLink{in: hello}
		h := &Handshake{link: l, cfg: &Config{Bound: b, Failed: func(_ conn.Link, _ *tls.Conn, err error) []byte {
			failed = err
			return nil
		}}}
		if next := h.Data(false); next != conn.More || !h.awaited() {
			t.Fatalf("%s: %d for a ClientHello", tt.why, next)
		}
		l.in = append(bytes.Clone(hello), make([]byte, tt.more)...)
		if next := h.Data(tt.eof); next != tt.next || failed != tt.err {
			t.Errorf("%s: %d and %v, want %d and %v", tt.why, next, failed, tt.next, tt.err)
		}
		if running, waiting := b.Count(); running != 1 || waiting == 0 != (tt.err != nil) {
			t.Errorf("%s: %d run, %d wait", tt.why, running, waiting)
		}
		b.leave(h)
		b.leave(first)
		b.empty(t)
	}
}
