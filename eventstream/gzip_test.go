package eventstream

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/takeover"
	"github.com/chert-http/chert/internal/wsdeflate"
)

// TestShift: the checksum of two parts is that of the whole.
func TestShift(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 3, 100, 4096, 65535, 65536, 1 << 20, 1<<20 + 1} {
		a, b := []byte("what was before"), make([]byte, n)
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		got := crcMul(crcShift(n), crc32.ChecksumIEEE(a)) ^ crc32.ChecksumIEEE(b)
		if want := crc32.ChecksumIEEE(append(a, b...)); got != want {
			t.Errorf("%d bytes: %08x, want %08x", n, got, want)
		}
	}
}

// kept is a ResponseWriter and a takeover.Stream that keeps what is sent. It accepts as
// much as it has room for, if room is not 0.
type kept struct {
	http.ResponseWriter
	bytes.Buffer
	room   int
	source takeover.Source
	ended  bool
}

func (k *kept) Write(p []byte) (int, error) { return k.Buffer.Write(p) }

func (k *kept) Outlive(begin func(takeover.Stream, bool) takeover.Source) error {
	k.source = begin(k, false)
	return nil
}
func (k *kept) Hold(func(func([]byte)) takeover.Source) error { return net.ErrClosed }

func (k *kept) Offer(p []byte, _, limit int) (bool, error) {
	if k.room > 0 && k.Len()+len(p) > k.room && limit >= 0 {
		return true, takeover.ErrFull
	}
	k.Buffer.Write(p)
	return false, nil
}
func (k *kept) End(bool)             { k.ended = true }
func (k *kept) RemoteAddr() net.Addr { return nil }

// keep opens a stream that accepts gzip, unless plain.
func keep(t testing.TB, h *Handler, plain bool) (s *Stream, k *kept) {
	t.Helper()
	k = &kept{ResponseWriter: httptest.NewRecorder()}
	r := httptest.NewRequest("GET", "/", nil)
	if !plain {
		r.Header.Set("Accept-Encoding", "gzip")
	}
	h.ServeHTTP(k, r)
	return (*Stream)(k.source.(*source)), k
}

// unzipped decodes all of a stream that has ended.
func unzipped(t testing.TB, b []byte) string {
	t.Helper()
	in := bytes.NewReader(b)
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	z.Multistream(false)
	got, err := io.ReadAll(z)
	if err != nil || in.Len() > 0 {
		t.Fatalf("%v, %d bytes left", err, in.Len())
	}
	return string(got)
}

// FuzzGzip: whatever is sent in whatever order, a compressed stream decodes to what
// another one gets, and its end says so. Each pair of bytes is one thing that happens.
func FuzzGzip(f *testing.F) {
	f.Add([]byte("p0p1p2p3b0p4p5s6s7s8p9q0q1p2p3b0s4l0p5j0p6"))
	f.Add([]byte("pzpzpz\xff\xffpzpz"))
	f.Add([]byte("j1q2p3p5p7q2q2p3q2"))                  // two topics, one after the other
	f.Add([]byte("p1p2l0p\x7fp\x7dp\x7bj0p1p2p1p2p1p2")) // events that nobody gets
	f.Add(bytes.Repeat([]byte("p\x10p\x20s\x30"), 50))
	f.Add(bytes.Repeat([]byte("p\xf0"), 30))
	f.Fuzz(func(t *testing.T, ops []byte) {
		ops = ops[:min(len(ops), 300)]
		h, err := New(&Options{Compression: true, Heartbeat: -1, MaxUnsent: -1, Retry: -1})
		if err != nil {
			t.Fatal(err)
		}
		topics := [2]*Topic{}
		for i := range topics {
			if topics[i], err = NewTopic(&TopicOptions{HistoryEvents: 3}); err != nil {
				t.Fatal(err)
			}
		}
		var streams [2]*Stream
		var all [2]*kept
		for i := range all {
			streams[i], all[i] = keep(t, h, i == 1)
			topics[0].Join(streams[i])
		}
		settle := func() {
			for _, topic := range topics {
				topic.settle()
			}
		}
		for len(ops) >= 2 {
			op, n := ops[0], int(ops[1])
			ops = ops[2:]
			e := Event{Data: data(n)}
			switch op {
			case 'p', 'q':
				topics['q'-op].settle() // events of two topics may come in any order
				topics[op-'p'].Publish(e)
			case 'l':
				topics[0].Leave(streams[0])
				topics[0].Leave(streams[1])
			case 'j':
				settle()
				for _, s := range streams {
					topics[n%2].JoinAfter(s, "an event that is too old")
				}
			default:
				settle() // so that both get it at the same place
				for _, s := range streams {
					if op == 's' {
						s.Send(e)
					} else {
						s.h.beatAfter = 1
						s.tick(s.sent + 1)
					}
				}
			}
			if n%2 == 0 {
				settle()
			}
		}
		settle()
		for _, s := range streams {
			s.Close()
		}
		if got, want := unzipped(t, all[0].Bytes()), all[1].String(); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

// settle waits until everything has been sent.
func (t *Topic) settle() {
	for {
		t.mu.Lock()
		pumping := t.pumping
		t.mu.Unlock()
		if !pumping {
			return
		}
		runtime.Gosched()
	}
}

// data is of many lengths and kinds.
func data(n int) string {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	b := make([]byte, n%16*n%16*n)
	for i := range b {
		if b[i] = 'a' + byte(i)%16; n%3 == 0 {
			b[i] = byte(r.Uint32() | 32)
		}
	}
	return fmt.Sprint(n, " ", string(b))
}

// trade is an event as many feeds have it.
func trade(i int) Event {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	return Event{Type: "trade", Data: fmt.Sprintf(`{"symbol":"%c%c%c","price":%.2f,"volume":%d,"bid":%.2f,"ask":%.2f,"exchange":"XETRA","currency":"EUR"}`,
		'A'+r.IntN(4), 'A'+r.IntN(4), 'A'+r.IntN(4), r.Float64()*300, r.IntN(10000), r.Float64()*300, r.Float64()*300)}
}

// TestRatio: events that resemble those before become short, for all clients and for one.
func TestRatio(t *testing.T) {
	t.Parallel()
	h, err := New(&Options{Compression: true, Heartbeat: -1})
	if err != nil {
		t.Fatal(err)
	}
	topic, err := NewTopic(nil)
	if err != nil {
		t.Fatal(err)
	}
	joined, fromTopic := keep(t, h, false)
	own, alone := keep(t, h, false)
	topic.Join(joined)
	plain := 0
	for i := range 200 {
		e := trade(i)
		topic.Publish(e)
		topic.settle()
		own.Send(e)
		plain += len(e.append(nil))
	}
	for name, k := range map[string]*kept{"topic": fromTopic, "Send": alone} {
		if k.Len() > plain*2/5 {
			t.Errorf("%s: %d bytes for %d", name, k.Len(), plain)
		}
	}
	// What is silent has nothing.
	own.mu.Lock()
	have := own.z.window.Len()
	own.mu.Unlock()
	own.h.beatAfter = 1
	own.tick(own.sent + 1)
	if own.z.window != nil || have == 0 {
		t.Errorf("%d bytes are kept, then %v", have, own.z.window)
	}
}

// TestSkipped: what follows events that a slow client has not got refers to nothing in them.
func TestSkipped(t *testing.T) {
	t.Parallel()
	h, err := New(&Options{Compression: true, Heartbeat: -1, Slow: SlowDrop, Retry: -1})
	if err != nil {
		t.Fatal(err)
	}
	topic, err := NewTopic(&TopicOptions{HistoryEvents: 2})
	if err != nil {
		t.Fatal(err)
	}
	s, k := keep(t, h, false)
	topic.JoinAfter(s, "")
	want := ":\n\n"
	publish := func(from, to int, arrives bool) {
		for i := from; i < to; i++ {
			e := trade(i)
			if e.ID, err = topic.Publish(e); err != nil {
				t.Fatal(err)
			}
			topic.settle()
			if arrives {
				want += string(e.append(nil))
			}
		}
	}
	publish(0, 50, true)
	k.room = k.Len()
	publish(50, 60, false)
	publish(60, 62, true) // later
	k.room = 0
	k.source.Writable()
	publish(62, 70, true)
	s.Close()
	if got := unzipped(t, k.Bytes()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestJoinBesidePublish: a client whose last event is gone gets what the history has, also if
// that goes on between its lookup and its copy.
func TestJoinBesidePublish(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{true, false} {
		h, err := New(&Options{Compression: true, Heartbeat: -1, Retry: -1})
		if err != nil {
			t.Fatal(err)
		}
		topic, err := NewTopic(&TopicOptions{HistoryEvents: 2})
		if err != nil {
			t.Fatal(err)
		}
		publish := func(data ...string) {
			for _, d := range data {
				if _, err := topic.Publish(Event{ID: d, Data: d}); err != nil {
					t.Fatal(err)
				}
			}
		}
		publish("a", "b", "c")
		s, k := keep(t, h, plain)
		s.mu.Lock() // as join has it
		m := &subscription{t: topic, s: s}
		if _, complete := topic.add(m, "of old", false); complete {
			t.Error("the history is complete")
		}
		s.subs = append(s.subs, m)
		published := make(chan bool)
		go func() {
			defer close(published)
			publish("d", "e") // waits for s.mu once there is something
		}()
		for first := uint64(0); first < m.next+1; runtime.Gosched() {
			topic.mu.Lock()
			first = topic.first
			topic.mu.Unlock()
		}
		m.catchUp()
		s.mu.Unlock()
		<-published
		publish("f")
		topic.settle()
		ended := k.ended
		s.Close()
		got := k.String()
		if !plain {
			got = unzipped(t, k.Bytes())
		}
		const want = "id: d\ndata: d\n\nid: e\ndata: e\n\nid: f\ndata: f\n\n"
		if ended || !strings.HasSuffix(got, want) {
			t.Errorf("ended %v, got %q", ended, got)
		}
	}
}

// TestMemory: a silent stream that is compressed takes no more than its state.
func TestMemory(t *testing.T) {
	const count = 2000
	taken := func(plain bool) int {
		h, err := New(&Options{Compression: true, Heartbeat: -1})
		if err != nil {
			t.Fatal(err)
		}
		topic, err := NewTopic(nil)
		if err != nil {
			t.Fatal(err)
		}
		var all [count]*Stream
		before := settled()
		for i := range all {
			s, k := keep(t, h, plain)
			k.room, k.ResponseWriter = 1, nil
			k.Buffer = bytes.Buffer{}
			topic.Join(s)
			all[i] = s
		}
		after := settled()
		runtime.KeepAlive(all[:])
		return (after - before) / count
	}
	plain, zipped := taken(true), taken(false)
	if t.Logf("%d and %d bytes", plain, zipped); zipped > plain+100 {
		t.Errorf("%d bytes, %d without compression", zipped, plain)
	}
}

// settled is how many bytes the heap has when nothing more goes: what is in a pool needs a second collection.
func settled() int {
	for last := math.MaxInt; ; {
		var m runtime.MemStats
		runtime.GC()
		if runtime.ReadMemStats(&m); int(m.HeapAlloc) >= last {
			return last
		}
		last = int(m.HeapAlloc)
	}
}

// TestPieces: large, small and random pieces, of which those that gain nothing are stored.
func TestPieces(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 200_000)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	for _, plain := range [][]byte{nil, []byte("x"), []byte(strings.Repeat("x", 127)), []byte(strings.Repeat("x", 1<<20)), noise[:100], noise, noise[:maxStored], noise[:maxStored+1]} {
		var w wsdeflate.Window
		w.Add(noise[:10], windowBits)
		for _, p := range []*piece{newPiece(plain, nil), newPiece(plain, useful(&w, plain))} {
			if got := len(p.bytes(false)); got > len(plain)+5*(len(plain)/maxStored+2) {
				t.Errorf("%d bytes of %d", got, len(plain))
			}
			if got := cap(p.b); got > len(p.b)+len(p.b)/4+64 { // size classes
				t.Errorf("%d bytes are kept of %d", got, len(p.b))
			}
		}
		var z zipped
		p := newPiece(plain, nil)
		z.add(p, nil)
		end := z.end()
		b := append([]byte(gzipHeader), p.bytes(false)...)
		if got := unzipped(t, append(b, end.bytes(false)...)); got != string(plain) {
			t.Errorf("%d bytes, want %d", len(got), len(plain))
		}
	}
}
