//go:build linux || darwin

package fuzz

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert/test/internal/unlike"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// outcome is everything that can be observed of an exchange.
type outcome struct {
	wire  string // what the client received, without dates
	calls []*call
}

// theatre is the servers that play a script.
type theatre struct{ std, loops, goroutines *stage }

// headLimit is the limit of requests' heads. net/http adds 4 KiB to its limit.
const headLimit = 12 << 10

func newTheatre(t testing.TB) *theatre {
	quiet := log.New(io.Discard, "", 0)
	th := &theatre{newStage(t, "net/http"), newStage(t, "loops"), newStage(t, "goroutines")}
	engines.StartOn(t, &chert.Server{Engine: chert.EngineLoops, Handler: th.loops, ErrorLog: quiet, MaxHeaderBytes: headLimit}, th.loops.line)
	engines.StartOn(t, &chert.Server{Engine: chert.EngineGoroutines, Handler: th.goroutines, ErrorLog: quiet, MaxHeaderBytes: headLimit}, likeTCP{th.goroutines.line})
	engines.StartOn(t, &chert.Server{Engine: engines.NetHTTP, Handler: th.std, ErrorLog: quiet, MaxHeaderBytes: headLimit}, likeTCP{th.std.line})
	return th
}

// player is the client's side of a connection. One goroutine receives all the
// time, so that no server waits for the client to read; other goroutines read
// what it has received.
type player struct {
	*net.UnixConn
	mu   sync.Mutex
	more *sync.Cond
	got  []byte
	read int
	err  error
	done chan struct{}
}

func (p *player) receive() {
	defer close(p.done)
	room := make([]byte, 16<<10)
	for {
		n, err := p.UnixConn.Read(room)
		p.mu.Lock()
		p.got = append(p.got, room[:n]...)
		p.err = err
		p.more.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Read returns what has been received.
func (p *player) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.read == len(p.got) {
		if p.err != nil {
			return 0, p.err
		}
		p.more.Wait()
	}
	n := copy(b, p.got[p.read:])
	p.read += n
	return n, nil
}

// play plays s on st. With halfClose the client ends its side when it has sent
// everything; without, it waits for the server to end first.
func (st *stage) play(t testing.TB, s *script, halfClose bool) *outcome {
	st.reset()
	nc := st.line.dial(t)
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(servertest.Patience))
	p := &player{UnixConn: nc, done: make(chan struct{})}
	p.more = sync.NewCond(&p.mu)
	go p.receive()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		p.send(s)
		if halfClose {
			nc.CloseWrite()
		}
	}()
	<-p.done
	if errors.Is(p.err, os.ErrDeadlineExceeded) {
		t.Errorf("%s does not end the connection, half-closed %t, after\n%s\n%s", st.name, halfClose, glance(string(p.got)), s)
	}
	nc.Close()
	<-sent
	return &outcome{servertest.DateLine.ReplaceAllString(string(p.got), "Date: now\r\n"), st.over(t)}
}

// send is the client's part of the script. It continues whatever the server
// does: a write that fails means that the server has ended.
func (p *player) send(s *script) {
	inTurn := s.client.inTurn
	if !inTurn && s.client.split == splitNowhere {
		io.WriteString(p.UnixConn, strings.Join(s.bytes(), ""))
		return
	}
	answers := bufio.NewReader(p)
	for i, bytes := range s.bytes() {
		r := s.requests[i]
		inTurn = inTurn && r.body.sound && s.client.cut < 0
		if inTurn && r.waits() {
			p.pieces(s, r, bytes[:len(r.head)])
			bytes = bytes[len(r.head):]
			res, err := http.ReadResponse(answers, nil)
			if err == nil && res.StatusCode != http.StatusContinue {
				// A refusal.
				io.Copy(io.Discard, res.Body)
			}
			inTurn = err == nil && res.StatusCode == http.StatusContinue
		}
		if p.pieces(s, r, bytes) != nil {
			return
		}
		if inTurn && !r.does("hijack rest") {
			inTurn = answered(answers, s.methodThere(i))
		} else {
			inTurn = false
		}
	}
}

// waits reports whether the client must be invited before it sends the body:
// then the handler begins with reading it.
func (r *request) waits() bool {
	head := strings.ToLower(r.head)
	return strings.Contains(head, "\r\nexpect: 100-continue\r\n") && strings.Count(head, "\r\nexpect:") == 1 && r.version.text == "HTTP/1.1" && r.body.bytes != "" &&
		len(r.program) > 0 && (r.program[0] == "readall" || r.program[0] == "read 5")
}

// answered reads a response. If it returns false, the next one's beginning is
// unknown.
func answered(r *bufio.Reader, method string) bool {
	for {
		res, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			return false
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			return false
		}
		if res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols {
			return !res.Close
		}
	}
}

// pieces sends b in the pieces of the script.
func (p *player) pieces(s *script, r *request, b string) (err error) {
	write := func(n int) {
		n = min(n, len(b))
		if err == nil && n > 0 {
			_, err = io.WriteString(p.UnixConn, b[:n])
			b = b[n:]
			p.settle()
		}
	}
	const few = 300 // pieces, or it takes too long
	switch s.client.split {
	case splitRequests:
		write(len(b))
	case splitHeads:
		write(len(r.head))
	case splitLines:
		for range few {
			write(strings.IndexByte(b, '\n'))
			write(1)
		}
	case splitBytes:
		for range few {
			write(1)
		}
	case splitSizes:
		for _, n := range s.client.sizes {
			write(n)
		}
	}
	if err == nil && b != "" {
		_, err = io.WriteString(p.UnixConn, b)
	}
	return err
}

// settle gives the server time to read what was sent, so that pieces arrive as
// such. The server may be busy, so this does not insist.
func (p *player) settle() {
	raw, err := p.SyscallConn()
	if err != nil {
		return
	}
	for range 10 {
		queued := 0
		raw.Control(func(fd uintptr) { queued = sys.Queued(int(fd)) })
		if queued == 0 {
			return
		}
		runtime.Gosched()
	}
}

// perform plays the script on all servers and describes the differences that
// are not intended.
func (th *theatre) perform(t testing.TB, s *script) string {
	want := th.std.play(t, s, true)
	halfClose := !s.serverEnds()
	onLoops, onGoroutines := th.loops.play(t, s, halfClose), th.goroutines.play(t, s, halfClose)
	if d := onLoops.differs(onGoroutines); d != "" {
		return "the engines differ:\n" + d
	}
	if late := cmp.Or(th.loops.late(), th.goroutines.late()); late != "" {
		return late
	}
	return s.compare(want, onLoops)
}

// serverEnds reports whether the server must end the connection by itself: all
// requests are complete, so that it either serves the last one, which asks for
// the end, or has ended before.
func (s *script) serverEnds() bool {
	return s.client.cut < 0 && !slices.ContainsFunc(s.requests, func(r *request) bool {
		return !r.body.sound || r.does("hijack rest")
	})
}

// differs compares what must be equal to the last byte.
func (o *outcome) differs(other *outcome) string {
	if o.wire != other.wire {
		at := 0
		for at < min(len(o.wire), len(other.wire)) && o.wire[at] == other.wire[at] {
			at++
		}
		return fmt.Sprintf("from byte %d of the answer on:\n%s\n%s", at, glance(o.wire[at:]), glance(other.wire[at:]))
	}
	for i := range max(len(o.calls), len(other.calls)) {
		a, b := at(o.calls, i), at(other.calls, i)
		if a.String() != b.String() {
			return fmt.Sprintf("in call %d:\n%v\n%v", i, a, b)
		}
	}
	return ""
}

// at returns c[i], or nil if there is none.
func at[T any](c []*T, i int) *T {
	if i < len(c) {
		return c[i]
	}
	return nil
}

// FuzzExchange plays scripts on net/http, on loops and on goroutines. All must
// be alike, except for the table of differences.
func FuzzExchange(f *testing.F) {
	f.Add([]byte{})
	random := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		f.Add(randomTape(random))
	}
	th := newTheatre(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<10 {
			t.Skip("the grammar needs no more")
		}
		s := makeScript(data)
		if d := th.perform(t, s); d != "" {
			t.Errorf("%s\n%s", d, s)
		}
		servertest.Eventually(t, "no buffer is held", func() bool { return buf.Live() == 0 })
	})
}

func randomTape(r *rand.Rand) []byte {
	tape := make([]byte, r.IntN(120))
	for i := range tape {
		tape[i] = byte(r.Uint32())
	}
	return tape
}

// TestExchangeDifferences fails if the table has a difference that is not
// checked here and is not left to the tables of test/netdiff, or the reverse.
func TestExchangeDifferences(t *testing.T) {
	here := map[*unlike.Difference]bool{unlike.ChunkSize: true} // body.unlike; see the grammar
	for _, parts := range [][]part{methods, leads, versions, requestTargets, hosts, fields, wrongFields, lengthFields, codings, bothLengths, oddExtensions, oddTrailers} {
		for _, p := range parts {
			if p.unlike != nil {
				here[p.unlike] = true
			}
		}
	}
	for _, d := range differences {
		here[d.d] = true
	}
	for _, d := range unlike.All {
		if here[d] == d.TablesOnly {
			t.Errorf("%s: in the tables alone %t, in the grammar %t", d, d.TablesOnly, here[d])
		}
		delete(here, d)
	}
	for d := range here {
		t.Errorf("%s is not in the table", d)
	}
}

// TestExchanges is FuzzExchange with tapes from a fixed seed, so that every
// test run covers the grammar.
func TestExchanges(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 200
	}
	th := newTheatre(t)
	failures := 0
	for seed := range uint64(n) {
		tape := randomTape(rand.New(rand.NewPCG(seed, 0)))
		s := makeScript(tape)
		if d := th.perform(t, s); d != "" {
			t.Errorf("seed %d, tape %q: %s\n%s", seed, tape, d, s)
			if failures++; failures == 3 {
				t.Fatal("too many failures")
			}
		}
		servertest.Eventually(t, "no buffer is held", func() bool { return buf.Live() == 0 })
	}
	var used []string
	for id, n := range metDifferences {
		used = append(used, fmt.Sprintf("%s %d", id, n))
	}
	slices.Sort(used)
	t.Logf("differences met: %v", used)
}
