package netdiff

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/test/internal/unlike"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// This file runs the differential suite: the same bytes are sent to net/http's
// server and to chert on each engine, and inline on loops, at once and byte by
// byte, and everything that can be observed is compared: all bytes that come back, how the
// connection ends, what handlers saw, what was logged, and the connection's
// states. The tables are in the other files, one for each topic.
//
// The linked net/http is the reference, so a case does not assert what is
// right; it has the intended differences, with the bytes that chert sends
// instead. docs/differences.md explains each of these.

// diffCase is a conversation on one connection. The zero value of everything
// but the name is a GET that the handler of the path "/" serves.
type diffCase struct {
	name string
	send string      // the script, when it is one segment
	do   diffScript  // the script, when it is more
	h    diffHandler // default: diffHandlers, by path
	set  func(s *chert.Server)
	// n is how many requests must have been served before the connection counts
	// as kept. Default 1.
	n int
	// whole is why the bytes cannot be sent one by one.
	whole string
	// unlike is how chert differs intentionally.
	unlike *unlikeness
	// bug is how chert differs by mistake, until that is fixed.
	bug *unlikeness
}

// unlikeness is a difference. Sections of the sight that are empty here must be
// the same as net/http's; the others must be as given, and not all equal to
// net/http's.
type unlikeness struct {
	id *unlike.Difference
	on chert.Engine // default: all
	sight
}

// over returns s with u's sections in place of its own.
func (u *unlikeness) over(s sight) sight {
	if u == nil {
		return s
	}
	return sight{
		cmp.Or(u.wire, s.wire), cmp.Or(u.end, s.end), cmp.Or(u.handler, s.handler),
		cmp.Or(u.log, s.log), cmp.Or(u.states, s.states),
	}
}

// sight is everything that can be observed of a run. No section of it is empty.
type sight struct {
	wire    string // all bytes that came back, without the Date lines
	end     string // of the connection: kept, fin, reset, or left by the client
	handler string // what the handlers recorded
	log     string // ErrorLog's lines
	states  string // ConnState's
}

const nothing = "nothing"

// diffRun runs the cases of a topic. They spend most of their time waiting, so
// more of them run at once than there are processors.
func diffRun(t *testing.T, cases []diffCase) {
	t.Parallel()
	var all sync.WaitGroup
	names := make(map[string]bool)
	for i := range cases {
		c := &cases[i]
		if names[c.name] {
			t.Errorf("two cases are named %q", c.name)
		}
		names[c.name] = true
		all.Go(func() {
			diffPlaces <- struct{}{}
			defer func() { <-diffPlaces }()
			t.Run(c.name, c.run)
		})
	}
	all.Wait()
}

var diffPlaces = make(chan struct{}, 8)

func (c *diffCase) run(t *testing.T) {
	type run struct {
		e     chert.Engine
		place chert.Placement
		slow  bool
		name  string
		sight
	}
	runs := []*run{{e: engines.NetHTTP, name: "net/http"}, {e: chert.EngineGoroutines, name: "goroutines"}}
	if sys.HavePoller {
		// A server of one case proves no handler quick: the adaptive placement runs them on goroutines.
		runs = append(runs, &run{e: chert.EngineLoops, name: "loops"},
			&run{e: chert.EngineLoops, place: chert.PlacementInline, name: "loops, inline"})
	}
	if c.whole == "" {
		for _, r := range runs {
			runs = append(runs, &run{e: r.e, place: r.place, name: r.name + " byte by byte", slow: true})
		}
	}
	var all sync.WaitGroup
	for _, r := range runs {
		all.Go(func() { r.sight = c.play(t, r.e, r.place, r.slow) })
	}
	all.Wait()
	want, wrongs := runs[0].sight, make(map[string][]string)
	for _, r := range runs[1:] {
		wrong := compare(want, r.sight, c.differs(r.e))
		if r.e == engines.NetHTTP {
			// Where net/http itself depends on how the bytes are cut, it is no
			// reference, except where chert's way is spelt out.
			u := c.differs(chert.EngineLoops)
			wrong = compare(u.over(want), u.over(r.sight), nil)
		}
		if wrong != "" {
			wrongs[wrong] = append(wrongs[wrong], r.name)
		}
	}
	for wrong, who := range wrongs {
		t.Errorf("%s: %s", strings.Join(who, ", "), wrong)
	}
}

// differs is how chert differs on an engine; nil if it does not.
func (c *diffCase) differs(e chert.Engine) *unlikeness {
	u := c.unlike
	if u == nil {
		u = c.bug
	}
	if e == engines.NetHTTP || u != nil && u.on != chert.EngineAuto && u.on != e {
		return nil
	}
	return u
}

// resets reports whether chert must end the connection with a reset.
func (c *diffCase) resets(e chert.Engine) bool {
	u := c.differs(e)
	return u != nil && u.end == "reset"
}

// compare describes where got differs from want, which is net/http's, and not
// as u allows.
func compare(want, got sight, u *unlikeness) string {
	var b strings.Builder
	if u == nil {
		u = new(unlikeness)
	}
	still := u.id == nil
	for _, s := range []struct{ section, want, pinned, got string }{
		{"wire", want.wire, u.wire, got.wire},
		{"end", want.end, u.end, got.end},
		{"handler", want.handler, u.handler, got.handler},
		{"log", want.log, u.log, got.log},
		{"states", want.states, u.states, got.states},
	} {
		still = still || s.got != s.want
		switch {
		case s.pinned != "" && s.got != s.pinned:
			fmt.Fprintf(&b, "\n%s\ngot      %s\npinned   %s\nnet/http %s", s.section, servertest.Brief(s.got), servertest.Brief(s.pinned), servertest.Brief(s.want))
		case s.pinned == "" && s.got != s.want:
			fmt.Fprintf(&b, "\n%s\ngot      %s\nnet/http %s", s.section, servertest.Brief(s.got), servertest.Brief(s.want))
		}
	}
	if !still {
		fmt.Fprintf(&b, "\nno longer unlike net/http (%s)", u.id)
	}
	// Most refusals differ in the text after the status, and in nothing before it.
	if u.id == unlike.RefusalText && servertest.BeforeRefusal(got.wire) != servertest.BeforeRefusal(want.wire) {
		fmt.Fprintf(&b, "\nmore than a refusal's text is unlike net/http's: %s and %s", servertest.Brief(got.wire), servertest.Brief(want.wire))
	}
	return b.String()
}

// play runs the script once.
func (c *diffCase) play(t *testing.T, e chert.Engine, place chert.Placement, slow bool) sight {
	t.Helper()
	s := &scene{t: t, c: c, changed: make(chan struct{}), gates: make(map[string]int)}
	srv := &chert.Server{Engine: e, Placement: place}
	if c.set != nil {
		c.set(srv)
	}
	srv.Handler = s
	srv.ConnState = s.state
	ts := engines.Start(t, srv)
	s.ctl, s.log = ts.Control, ts.Log
	p := &diffClient{scene: s, slow: slow}
	p.dial(ts.ListenAddr)
	do := c.do
	if do == nil {
		do = say(c.send)
		if c.send == "" {
			do = say("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		}
	}
	for _, step := range do {
		step(p)
	}
	end := p.finish(max(c.n, 1))
	s.await("the connection and its handlers have ended", func() bool {
		return s.running == 0 && (s.last() == "closed" || s.last() == "hijacked")
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if end == "reset" && (e == engines.NetHTTP || s.last() == "hijacked" || slow && !c.resets(e)) {
		// net/http closes with unread bytes from the client, and so does a
		// hijacker. Whether that is a FIN or a reset depends on when they
		// arrived. chert lingers over what it knows of (RFC 9112 section 9.6),
		// so a reset is an error there, unless bytes continue to arrive.
		end = "fin"
	}
	return sight{
		wire:    orNothing(p.wire(end)),
		end:     end,
		handler: orNothing(strings.Join(s.notes, "\n")),
		log:     orNothing(plainLog(ts.Log.String())),
		states:  strings.Join(s.states, " "),
	}
}

func orNothing(s string) string {
	if s == "" {
		return nothing
	}
	return s
}

// scene is what the handlers, the hooks and the client of a run share.
type scene struct {
	t *testing.T
	c *diffCase

	mu      sync.Mutex
	changed chan struct{} // closed at each change
	notes   []string
	states  []string
	gates   map[string]int  // points that were reached, and open gates
	ctl     engines.Control // of the server
	log     *servertest.Log // ErrorLog's
	running int             // handlers, and goroutines that they have started
	got     []byte          // received by the client
	ended   error           // the client's read error
}

// change calls f, which changes state that others may wait for.
func (s *scene) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// await waits until f returns true; f is called with the lock held.
func (s *scene) await(what string, f func() bool) {
	s.t.Helper()
	limit := servertest.Patience
	if diffStuck.Load() > 5 {
		limit = time.Second // the server is broken; a further proof needs no patience
	}
	late := time.After(limit)
	for {
		s.mu.Lock()
		ok, changed := f(), s.changed
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-late:
			diffStuck.Add(1)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.t.Errorf("waited too long until %s\ngot %s, %v\nhandlers: %s\nstates: %s", what, servertest.Brief(string(s.got)), s.ended, strings.Join(s.notes, "\n"), strings.Join(s.states, " "))
			return
		}
	}
}

// diffStuck counts the waits that failed.
var diffStuck atomic.Int32

// last returns the connection's state. The lock is held.
func (s *scene) last() string {
	if len(s.states) == 0 {
		return ""
	}
	return s.states[len(s.states)-1]
}

func (s *scene) state(_ net.Conn, st http.ConnState) {
	s.change(func() { s.states = append(s.states, st.String()) })
}

// note records what a handler has observed.
func (s *scene) note(format string, args ...any) {
	s.change(func() { s.notes = append(s.notes, fmt.Sprintf(format, args...)) })
}

// point records that the handler has reached name.
func (s *scene) point(name string) { s.change(func() { s.gates[name]++ }) }

// hold is point, and waits there until the script opens the gate.
func (s *scene) hold(name string) {
	s.point(name)
	s.await("the script lets the handler on at "+name, func() bool { return s.gates["let "+name] > 0 })
}

// spawn runs f as a goroutine that the end of the run waits for.
func (s *scene) spawn(f func()) {
	s.change(func() { s.running++ })
	go func() {
		defer s.change(func() { s.running-- })
		f()
	}()
}

// ServeHTTP implements http.Handler.
func (s *scene) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/probe" {
		io.WriteString(w, "kept")
		return
	}
	s.change(func() { s.running++ })
	defer s.change(func() { s.running-- })
	seen := *r
	if engines.Sealed {
		seen.TLS = nil // net/http's server is not behind TLS
	}
	s.note("%s", servertest.RequestNote(&seen))
	h := s.c.h
	if h == nil {
		h = diffHandlers[r.URL.Path]
	}
	if h == nil {
		http.NotFound(w, r)
		return
	}
	h(s, w, r)
}

// A diffScript is what the client does.
type diffScript []func(p *diffClient)

// say sends b, in one segment or byte by byte.
func say(b string) diffScript { return diffScript{}.say(b) }

func (sc diffScript) then(f func(p *diffClient)) diffScript { return append(slices.Clone(sc), f) }

func (sc diffScript) say(b string) diffScript { return sc.then(func(p *diffClient) { p.send(b) }) }

// hear waits until marker has arrived, after what was heard before.
func (sc diffScript) hear(marker string) diffScript {
	return sc.then(func(p *diffClient) {
		p.await(fmt.Sprintf("%q comes", marker), func() bool {
			i := bytes.Index(p.got[p.heard:], []byte(marker))
			if i >= 0 {
				p.heard += i + len(marker)
			}
			return i >= 0 || p.ended != nil
		})
	})
}

// hearEnd waits until the server has closed.
func (sc diffScript) hearEnd() diffScript {
	return sc.then(func(p *diffClient) {
		p.await("the server closes", func() bool { return p.ended != nil })
	})
}

// reach waits until a handler has reached a point.
func (sc diffScript) reach(point string) diffScript {
	return sc.then(func(p *diffClient) {
		p.await("a handler comes to "+point, func() bool { return p.gates[point] > 0 || p.ended != nil })
	})
}

// let opens a gate where a handler holds.
func (sc diffScript) let(point string) diffScript {
	return sc.then(func(p *diffClient) { p.change(func() { p.gates["let "+point]++ }) })
}

// idle waits until n requests have been served.
func (sc diffScript) idle(n int) diffScript {
	return sc.then(func(p *diffClient) {
		p.await("the connection is idle", func() bool { return p.idles() >= n || p.ended != nil })
	})
}

// logs waits until something was logged, where there is no other event.
func (sc diffScript) logs(text string) diffScript {
	return sc.then(func(p *diffClient) {
		servertest.Eventually(p.t, "the log has "+text, func() bool { return strings.Contains(p.log.String(), text) })
	})
}

// settle waits until what was sent has arrived in the server's socket.
func (sc diffScript) settle() diffScript { return sc.then((*diffClient).settle) }

// halfClose ends the client's sending side.
func (sc diffScript) halfClose() diffScript {
	return sc.then(func(p *diffClient) {
		p.half = true
		p.nc.CloseWrite()
	})
}

// reset closes with a reset, leave with a FIN.
func (sc diffScript) reset() diffScript {
	return sc.then(func(p *diffClient) {
		p.nc.SetLinger(0)
		p.leave()
	})
}

func (sc diffScript) leave() diffScript { return sc.then((*diffClient).leave) }

// diffClient is the client of a run.
type diffClient struct {
	*scene
	slow  bool
	nc    *net.TCPConn
	half  bool // it has sent FIN
	left  bool // it has closed
	heard int  // how much of what arrived was waited for
}

func (p *diffClient) dial(addr string) {
	p.t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(2 * servertest.Patience))
	p.nc = nc.(*net.TCPConn)
	go p.read()
}

func (p *diffClient) read() {
	b := make([]byte, 64<<10)
	for {
		n, err := p.nc.Read(b)
		p.change(func() {
			p.got = append(p.got, b[:n]...)
			p.ended = err
		})
		if err != nil {
			return
		}
	}
}

// send sends s. Once the server has closed, writes may fail: that is its
// response, and no fault of the client.
func (p *diffClient) send(s string) {
	size := len(s)
	if p.slow {
		// Long bodies are sent in a thousand pieces.
		size = max(1, len(s)/1000)
	}
	for len(s) > 0 {
		k := min(size, len(s))
		if _, err := io.WriteString(p.nc, s[:k]); err != nil {
			return
		}
		s = s[k:]
		if p.slow && k == 1 {
			runtime.Gosched() // gives the server a chance to read it alone
		}
	}
}

func (p *diffClient) settle() {
	raw, err := p.nc.SyscallConn()
	if err != nil {
		p.t.Fatal(err)
	}
	servertest.Eventually(p.t, "all has arrived", func() bool {
		queued := 0
		return raw.Control(func(fd uintptr) { queued = sys.Queued(int(fd)) }) != nil || queued == 0
	})
}

func (p *diffClient) leave() {
	p.left = true
	p.nc.Close()
}

// idles counts the served requests. The lock is held.
func (s *scene) idles() (n int) {
	for _, st := range s.states {
		if st == "idle" {
			n++
		}
	}
	return n
}

const (
	probe       = "GET /probe HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
	probeAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\nkept"
)

// finish ends the conversation and returns how it ended. A connection that is
// idle after n requests must serve another one.
func (p *diffClient) finish(n int) string {
	p.t.Helper()
	if p.left {
		p.await("the client's read ends", func() bool { return p.ended != nil })
		return "left"
	}
	p.await("the server closes or has responded", func() bool {
		return p.ended != nil || !p.half && p.idles() >= n && p.last() == "idle"
	})
	p.mu.Lock()
	ended := p.ended
	p.mu.Unlock()
	if ended == nil {
		io.WriteString(p.nc, probe)
		p.await("the server has responded to the probe and closes", func() bool { return p.ended != nil })
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last() != "hijacked" {
		// The test reads no more. A reset avoids TIME_WAIT: there are thousands
		// of these connections.
		p.nc.SetLinger(0)
	}
	p.nc.Close()
	switch {
	case ended == nil && strings.HasSuffix(servertest.Undated(string(p.got)), probeAnswer):
		return "kept"
	case p.ended == io.EOF || ended == nil:
		// A server that was about to close does so over the probe.
		return "fin"
	case errors.Is(p.ended, syscall.ECONNRESET):
		return "reset"
	}
	return p.ended.Error()
}

// wire returns everything that arrived, without the response to the probe. The
// lock is held.
func (p *diffClient) wire(end string) string {
	switch s := servertest.Undated(string(p.got)); end {
	case "kept":
		return strings.TrimSuffix(s, probeAnswer)
	case "left":
		// How much arrives before the client leaves depends on timing, except
		// for what it waited for.
		return servertest.Undated(string(p.got[:p.heard]))
	default:
		return s
	}
}

var addresses = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// plainLog removes from ErrorLog's lines what differs from run to run:
// addresses and the stacks of panics.
func plainLog(s string) string {
	var b strings.Builder
	stack := false
	for line := range strings.Lines(addresses.ReplaceAllString(s, "ADDR")) {
		if strings.HasPrefix(line, "goroutine ") {
			stack = true
			b.WriteString("[stack]\n")
		} else if strings.HasPrefix(line, "http: ") || strings.HasPrefix(line, "chert: ") {
			stack = false
		}
		if !stack {
			b.WriteString(line)
		}
	}
	return b.String()
}

// errNote is the text and the identity of an error.
func errNote(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET):
		return "peer gone" // which of the two depends on timing
	}
	var is []string
	for _, known := range []struct {
		name string
		err  error
	}{
		{"EOF", io.EOF},
		{"ErrUnexpectedEOF", io.ErrUnexpectedEOF},
		{"ErrLineTooLong", http.ErrLineTooLong},
		{"ErrBodyReadAfterClose", http.ErrBodyReadAfterClose},
		{"ErrContentLength", http.ErrContentLength},
		{"ErrBodyNotAllowed", http.ErrBodyNotAllowed},
		{"ErrHijacked", http.ErrHijacked},
		{"ErrNotSupported", http.ErrNotSupported},
		{"ErrDeadlineExceeded", os.ErrDeadlineExceeded},
		{"ErrClosed", net.ErrClosed},
	} {
		switch {
		case err == known.err:
			is = append(is, known.name)
		case errors.Is(err, known.err):
			is = append(is, "wraps "+known.name)
		}
	}
	var limit *http.MaxBytesError
	if errors.As(err, &limit) {
		is = append(is, fmt.Sprintf("MaxBytesError %d", limit.Limit))
	}
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		is = append(is, "timeout")
	}
	// The addresses that are named are tested by a separate case.
	text := strings.Replace(addresses.ReplaceAllString(err.Error(), "ADDR"), "ADDR->ADDR", "ADDR", 1)
	return fmt.Sprintf("%q %v", text, is)
}
