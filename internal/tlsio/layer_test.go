package tlsio

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/testing/servertest"
)

const (
	kindAlert     = 21
	kindHandshake = 22
	kindData      = 23
	keyUpdate     = "\x18\x00\x00\x01\x00"
	askedUpdate   = "\x18\x00\x00\x01\x01"
	closeNotify   = "\x01\x00"
)

// feed gives src to l in pieces of n bytes, and returns what it opens.
func feed(t testing.TB, l conn.Layer, src []byte, n int) (got string, err error) {
	t.Helper()
	var raw []byte
	for len(src) > 0 && err == nil {
		k := min(n, len(src))
		raw, src = append(raw, src[:k]...), src[k:]
		var out []byte
		var used int
		out, used, err = l.Open(nil, raw)
		got += string(out)
		notInside(t, l, raw)
		for i := range raw[:used] {
			raw[i] = 0xee // the memory is used for others
		}
		raw = raw[used:]
	}
	if err == nil && len(raw) > 0 {
		t.Errorf("%d bytes were left", len(raw))
	}
	return got, err
}

// ways are records and what copies them instead of lending them.
var ways = []func(testing.TB) (conn.Layer, *keys, *keys){records, func(t testing.TB) (conn.Layer, *keys, *keys) {
	l, client, server := records(t)
	(*wire)(l.(*layer)).lends = false
	return l, client, server
}}

// Requests share one state, which a layer does not keep: the next has one that says the same.
func TestLayerState(t *testing.T) {
	t.Parallel()
	l, _, _ := records(t)
	state := l.(conn.Secured).TLS()
	if again := l.(conn.Secured).TLS(); again != state {
		t.Error("two requests have a state each")
	}
	text := func(s *tls.ConnectionState) string {
		key, err := s.ExportKeyingMaterial("EXPORTER-test", nil, 16)
		return fmt.Sprintln(s.Version, s.CipherSuite, s.NegotiatedProtocol, s.ServerName, s.HandshakeComplete, key, err)
	}
	want, left := text(state), weak.Make(state)
	state = nil
	runtime.GC()
	if left.Value() != nil {
		t.Error("the layer keeps the state")
	}
	if got := text(l.(conn.Secured).TLS()); got != want || !strings.Contains(got, "true") {
		t.Errorf("after a collection %q, before it %q", got, want)
	}
}

// What the client seals is opened, however its bytes come.
func TestLayerOpens(t *testing.T) {
	t.Parallel()
	for i, pieces := range []int{1, 1, 2, 2, 4, 4, 5, 5, 6, 6, 7, 7, 1000, 1000, 1 << 20, 1 << 20} {
		l, client, server := ways[i%2](t)
		var all []byte
		want := ""
		for _, p := range []string{"a", "", "bc", strings.Repeat("large", 3276), strings.Repeat("x", maxPlain), "d"} {
			all = append(all, client.seal(kindData, p)...)
			want += p
		}
		for _, p := range "one byte in each record" {
			all = append(all, client.seal(kindData, string(p))...)
			want += string(p)
		}
		all = append(all, client.seal(kindHandshake, keyUpdate)...)
		client.update()
		// In three records.
		for _, p := range []string{askedUpdate[:1], askedUpdate[1:3], askedUpdate[3:]} {
			all = append(all, client.seal(kindHandshake, p)...)
		}
		client.update()
		all = append(all, client.seal(kindData, "after the updates")...)
		all = append(all, client.seal(kindAlert, closeNotify)...)
		got, err := feed(t, l, all, pieces)
		if want += "after the updates"; got != want || err != io.EOF {
			t.Fatalf("pieces of %d: %v, %d bytes, want %d", pieces, err, len(got), len(want))
		}
		if !l.Pending() {
			t.Error("no answer to the KeyUpdate")
		}
		out := l.Seal(nil, nil)
		if got := server.open(out); !slices.Equal(got, []string{"handshake:" + keyUpdate}) {
			t.Errorf("the answer is %q", got)
		}
		server.update()
		out = l.Close(l.Seal(nil, []byte("answer")))
		if got := server.open(out); !slices.Equal(got, []string{"data:answer", "alert:" + closeNotify}) {
			t.Errorf("then %q", got)
		}
		if l.Pending() {
			t.Error("something is left")
		}
	}
}

// One Seal is one record, and what Open has left goes first.
func TestLayerSeals(t *testing.T) {
	t.Parallel()
	l, client, server := records(t)
	for i := range 3 {
		if _, err := feed(t, l, client.seal(kindHandshake, askedUpdate), 1000); err != nil {
			t.Fatal(err)
		}
		client.update()
		large := strings.Repeat("x", conn.MaxPlain)
		out := l.Seal([]byte("before"), []byte(large))
		rest, ok := bytes.CutPrefix(out, []byte("before"))
		n := headerSize + len(keyUpdate) + 1 + 16
		if !ok || len(rest) < n {
			t.Fatalf("%d: %d bytes", i, len(out))
		}
		got := server.open(rest[:n])
		server.update()
		if got = append(got, server.open(rest[n:])...); !slices.Equal(got, []string{"handshake:" + keyUpdate, "data:" + large}) {
			t.Errorf("%d: got %d records", i, len(got))
		}
	}
}

func TestLayerRefuses(t *testing.T) {
	t.Parallel()
	type test struct {
		name  string
		make  func(k *keys) []byte
		alert byte   // 0 for none
		got   string // before
	}
	times := func(n int, kind byte, p string) func(*keys) []byte {
		return func(k *keys) (b []byte) {
			for range n {
				if b = append(b, k.seal(kind, p)...); p == keyUpdate {
					k.update()
				}
			}
			return b
		}
	}
	damaged := func(k *keys) []byte {
		b := k.seal(kindData, "x")
		b[len(b)-1] ^= 1
		return b
	}
	for _, tt := range []test{
		{"a damaged record", damaged, 20, ""},
		{"after data", func(k *keys) []byte { return append(k.seal(kindData, "data"), damaged(k)...) }, 20, "data"},
		{"a header that is too long", func(*keys) []byte { return []byte("\x17\x03\x03\xff\xff") }, 22, ""},
		{"too long for TLS 1.3", func(*keys) []byte {
			return append([]byte("\x17\x03\x03\x41\x01"), make([]byte, 0x4101)...)
		}, 22, ""},
		{"another version", func(*keys) []byte { return []byte("\x17\x03\x01\x00\x01x") }, 70, ""},
		{"plain HTTP", func(*keys) []byte { return []byte("GET / HTTP/1.1\r\n\r\n")[:headerSize] }, 70, ""},
		{"an old plain type", func(*keys) []byte { return []byte("\x16\x03\x03\x00\x01x") }, 20, ""},
		{"a type that there is not", func(k *keys) []byte { return k.seal(99, "x") }, 10, ""},
		{"a message that there is not", times(1, kindHandshake, "\x63\x00\x00\x00"), 10, ""},
		{"a second ClientHello", times(1, kindHandshake, "\x01\x00\x00\x00"), 50, ""},
		{"empty records", times(17, kindData, ""), 10, ""},
		{"updates", times(17, kindHandshake, keyUpdate), 10, ""},
		{"data within a message", func(k *keys) []byte {
			return append(k.seal(kindHandshake, "\x18\x00"), k.seal(kindData, "x")...)
		}, 10, ""},
		{"a fatal alert", times(1, kindAlert, "\x02\x2a"), 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for i, pieces := range []int{1, 1, 1 << 20, 1 << 20} {
				l, client, server := ways[i%2](t)
				got, err := feed(t, l, tt.make(client), pieces)
				if got != tt.got || err == nil || err == io.EOF {
					t.Errorf("got %q, %v", got, err)
				}
				if _, _, again := l.Open(nil, client.seal(kindData, "x")); again == nil {
					t.Error("it goes on")
				}
				if l.Pending() != (tt.alert != 0) {
					t.Errorf("Pending is %v", l.Pending())
				}
				sent := server.open(l.Close(nil))
				want := []string{"alert:" + closeNotify}
				if tt.alert != 0 {
					want = slices.Insert(want, 0, "alert:\x02"+string(tt.alert))
				}
				if !slices.Equal(sent, want) {
					t.Errorf("sent %q, want %q", sent, want)
				}
			}
		})
	}
}

// Answers that the peer does not take are bounded; they do not add up if it does.
func TestLayerOwes(t *testing.T) {
	t.Parallel()
	for _, takes := range []bool{true, false} {
		l, client, server := records(t)
		var err error
		for i := 0; i < 2000 && err == nil; i++ {
			rec := client.seal(kindHandshake, askedUpdate)
			client.update()
			rec = append(rec, client.seal(kindData, "x")...)
			_, _, err = l.Open(nil, rec)
			if takes {
				server.open(l.Seal(nil, nil))
				server.update()
			}
		}
		if takes && err != nil || !takes && err != errOwed {
			t.Errorf("taken: %v: %v", takes, err)
		}
		if n := len((*wire)(l.(*layer)).out); n > maxOwed+100 {
			t.Errorf("%d bytes are kept", n)
		}
	}
}

// Seal beside Open: records come out in the order of their numbers.
func TestLayerBeside(t *testing.T) {
	t.Parallel()
	l, client, server := records(t)
	const updates = 200
	var all sync.WaitGroup
	all.Go(func() {
		for range updates {
			rec := client.seal(kindHandshake, askedUpdate)
			client.update()
			rec = append(rec, client.seal(kindData, "x")...)
			if _, n, err := l.Open(nil, rec); n != len(rec) || err != nil {
				t.Error(n, err)
			}
		}
	})
	var sealed []byte
	for i := range 2000 {
		if sealed = l.Seal(sealed, []byte("data")); i%100 == 0 {
			sealed = l.Seal(sealed, nil)
		}
	}
	all.Wait()
	sealed = l.Seal(sealed, nil)
	seen := 0
	for len(sealed) > 0 {
		n := whole(sealed)
		got := server.open(sealed[:n])
		if sealed = sealed[n:]; got[0] == "handshake:"+keyUpdate {
			server.update()
			seen++
		}
	}
	if seen != updates {
		t.Errorf("%d answers to %d updates", seen, updates)
	}
}

// A hijacked connection goes on where the layer was.
func TestLayerConn(t *testing.T) {
	t.Parallel()
	l, client, server := records(t)
	feed(t, l, client.seal(kindHandshake, askedUpdate), 100)
	client.update()
	rec := client.seal(kindData, "raw")
	a, b := servertest.TCPConns(t)
	defer b.Close()
	b.Write(rec[10:])
	nc := l.Conn(a, rec[:10])
	defer nc.Close()
	if tc, ok := nc.(*tls.Conn); !ok || lends() && tc.NetConn() != a {
		t.Fatalf("it is a %T", nc)
	}
	p := make([]byte, 10)
	if n, err := nc.Read(p); string(p[:n]) != "raw" || err != nil {
		t.Errorf("read %q, %v", p[:n], err)
	}
	io.WriteString(nc, "answer")
	n := headerSize + len(keyUpdate) + 17
	sent := make([]byte, n+headerSize+len("answer")+17)
	io.ReadFull(b, sent)
	if first := server.open(sent[:n]); first[0] != "handshake:"+keyUpdate {
		t.Errorf("sent %q", first)
	}
	server.update()
	if then := server.open(sent[n:]); then[0] != "data:answer" {
		t.Errorf("then %q", then)
	}
}

// A record that is lent is opened without an allocation.
func TestOpenAllocates(t *testing.T) {
	l, client, _ := records(t)
	if !(*wire)(l.(*layer)).lends {
		t.Skip("nothing is lent with this version of Go")
	}
	const runs = 100
	var all [runs + 1][]byte
	for i := range all {
		all[i] = client.seal(kindData, "a small request")
	}
	dst, i := make([]byte, 0, 1<<10), 0
	if n := testing.AllocsPerRun(runs, func() {
		if out, _, err := l.Open(dst, all[i]); err != nil || len(out) == 0 {
			t.Fatal(len(out), err)
		}
		i++
	}); n > 0 {
		t.Errorf("%v allocations for each record", n)
	}
}

// Nothing large stays, whatever has come; and nothing is lost that has not been
// read.
func TestIdle(t *testing.T) {
	t.Parallel()
	if !lends() {
		t.Skip("crypto/tls keeps what it has with this version of Go")
	}
	l, client, _ := ways[1](t)
	v := reflect.ValueOf((*wire)(l.(*layer)).tc).Elem()
	size := func(field string) int { return v.FieldByName(field).FieldByName("buf").Cap() }
	if n, m := size("rawInput"), size("hand"); n > 0 || m > 0 {
		t.Errorf("after the handshake: %d and %d bytes", n, m)
	}
	large := strings.Repeat("x", maxPlain)
	for range 3 {
		if got, err := feed(t, l, client.seal(kindData, large), 1<<20); got != large || err != nil {
			t.Fatal(len(got), err)
		}
		if size("rawInput") < maxPlain {
			t.Error("this test sees nothing")
		}
		if l.Idle(); size("rawInput") > keepInput {
			t.Errorf("%d bytes are kept", size("rawInput"))
		}
		// In the middle of a message.
		feed(t, l, client.seal(kindHandshake, keyUpdate[:3]), 1<<20)
		l.Idle()
		if _, err := feed(t, l, client.seal(kindHandshake, keyUpdate[3:]), 1<<20); err != nil {
			t.Fatal(err)
		}
		client.update()
	}
	small := strings.Repeat("y", 300)
	feed(t, l, client.seal(kindData, small), 1<<20)
	before := size("rawInput")
	if l.Idle(); size("rawInput") != before || before == 0 {
		t.Errorf("of %d bytes for small requests %d are kept", before, size("rawInput"))
	}
}

// The bytes of a wire are the server's, while it has a layer.
func TestWireInMemory(t *testing.T) {
	t.Parallel()
	l, _, _ := records(t)
	w := (*wire)(l.(*layer))
	if n, err := w.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Error(n, err)
	} else if ne, ok := err.(interface{ Temporary() bool }); !ok || !ne.Temporary() {
		t.Errorf("%v ends the connection", err)
	}
}
