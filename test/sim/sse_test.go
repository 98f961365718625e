//go:build linux

package sim

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chert-http/chert/eventstream"
)

// sseServer publishes numbered events in a topic, for as long as there are clients.
type sseServer struct {
	v       *served
	topic   *eventstream.Topic
	rand    *rand.Rand // the publisher's
	ownIDs  bool       // else the topic makes them
	limited bool       // streams of those who read slowly end, or, with skips, miss events
	skips   bool
	bursts  bool // events at once; the Go scheduler decides when the topic begins to send them
	slow    *slowness

	mu      sync.Mutex
	streams []*sseStream // open ones
	opened  int
	closed  int
	ended   map[uint64]bool // streams that the server has closed
}

// sseStream is one stream; key is the number that its client gives it.
type sseStream struct {
	*eventstream.Stream
	key  uint64
	sent int // events for it alone
}

func newSSE(v *served) http.Handler {
	d := v.dice
	e := &sseServer{v: v, rand: rand.New(rand.NewPCG(d.Uint64(), 1)), ownIDs: d.IntN(2) == 0, ended: make(map[uint64]bool)}
	var err error
	history := [...]int{2, 8, 100, 0}[d.IntN(4)]
	if e.topic, err = eventstream.NewTopic(&eventstream.TopicOptions{HistoryEvents: history}); err != nil {
		panic(err)
	}
	e.slow = newSlowness(history)
	o := eventstream.Options{OnOpen: e.open, OnClose: e.over, MaxUnsent: -1, Compression: d.OneIn(3),
		Heartbeat: time.Duration(1+d.IntN(5000)) * time.Millisecond}
	e.bursts = d.OneIn(4)
	if d.IntN(2) == 0 {
		e.limited = true
		o.MaxUnsent = 0
		if e.skips = d.OneIn(3); e.skips {
			o.Slow = eventstream.SlowDrop
		}
	}
	h, err := eventstream.New(&o)
	if err != nil {
		panic(err)
	}
	v.sse = e
	v.ends = append(v.ends, e.end)
	v.running.Add(1)
	go e.publish()
	return h
}

func (e *sseServer) open(s *eventstream.Stream, r *http.Request) {
	key, _ := strconv.ParseUint(r.URL.Path[1:], 10, 64)
	x := &sseStream{Stream: s, key: key}
	s.SetValue(x)
	e.slow.open(key, s.LastEventID() == "")
	complete := e.topic.Join(s)
	e.slow.sent(key, s.Send(eventstream.Event{Type: "joined", Data: strconv.FormatBool(complete)}))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opened++
	e.streams = append(e.streams, x)
}

func (e *sseServer) over(s *eventstream.Stream) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed++
	e.streams = slices.DeleteFunc(e.streams, func(x *sseStream) bool { return x.Stream == s })
}

func (e *sseServer) hasEnded(key uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended[key]
}

// data is the data of event n, as it arrives.
func (e *sseServer) data(n uint64) string {
	size := int(n * 2654435761 % 200)
	if n%97 == 0 || e.limited && n%5 == 0 {
		size = int(n * 2654435761 % 20_000)
	}
	b := fmt.Appendf(nil, "%d\n", n)
	for _, x := range body(n, size) {
		if x < 8 {
			b = append(b, '\n')
		} else {
			b = append(b, 'a'+x%26)
		}
	}
	return string(b)
}

// publish publishes until all clients are over. It also sends events to single streams,
// and closes some.
func (e *sseServer) publish() {
	defer e.v.running.Add(-1)
	for n := uint64(0); ; {
		wait := 20 * time.Millisecond
		if e.rand.IntN(50) == 0 {
			wait = 10 * time.Second // heartbeats
		}
		time.Sleep(time.Duration(e.rand.Int64N(int64(wait))))
		if e.v.finished.Load() {
			return
		}
		e.v.world.Point(1 << 40)
		for range 1 + e.rand.IntN(6) {
			n++
			ev := eventstream.Event{Data: e.data(n)}
			if n%3 == 0 {
				ev.Data = strings.ReplaceAll(ev.Data, "\n", "\r\n")
			}
			if e.ownIDs {
				ev.ID = fmt.Sprintf("own-%d", n)
			}
			e.slow.publish(ev.Data, func() {
				if _, err := e.topic.Publish(ev); err != nil {
					e.v.wrong(err)
				}
			})
			if !e.bursts {
				e.v.world.Point(1 << 40) // the topic's own goroutine sends it meanwhile
			}
		}
		e.v.world.Point(1 << 40)
		e.mu.Lock()
		var x *sseStream
		if len(e.streams) > 0 {
			x = e.streams[e.rand.IntN(len(e.streams))]
		}
		e.mu.Unlock()
		switch k := e.rand.IntN(40); {
		case x == nil || k > 20:
		case k == 0:
			e.mu.Lock()
			e.ended[x.key] = true
			e.mu.Unlock()
			x.Close()
		default:
			x.sent++
			e.slow.sent(x.key, x.Send(eventstream.Event{Type: "alone", Data: fmt.Sprintf("%d %d", x.sent, n)}))
		}
	}
}

// end checks that all streams have ended, once.
func (e *sseServer) end() error {
	time.Sleep(5 * time.Second) // the heartbeats end with the first that finds no stream
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := e.topic.Len(); n != 0 || e.opened != e.closed || len(e.streams) != 0 {
		return fmt.Errorf("%d streams have opened and %d closed; %d are in the topic at the end", e.opened, e.closed, n)
	}
	return nil
}

// sseClient plays a client of an event stream, which connects again and again.
type sseClient struct {
	peer
	conns  int
	lastID string // of the last event, for Last-Event-ID
	last   uint64 // its number, if known
	known  bool

	key      uint64
	head     bool // the response's head has arrived
	refused  bool
	zip      bool
	final    bool   // the last chunk has arrived
	packed   []byte // of a compressed body, all that has arrived
	read     int    // how much of what it unpacks to is in text
	unpacked int
	text     []byte // events that are not complete
	joined   string // whether the topic had all from lastID on; "" while it has not said so
	gap      bool   // it had not, it seems
	alone    int    // the last of the events for this client
	by       int64  // when the next event must have arrived, if the client reads
}

func (c *sseClient) state() string {
	return fmt.Sprintf("stream %d, head %v, compressed %v, event %d, ID %q, joined %q, %d bytes of an event",
		c.key, c.head, c.zip, c.last, c.lastID, c.joined, len(c.text))
}

// Step implements sim.Actor.
func (c *sseClient) Step() (did bool) {
	if c.pauseTo > 0 {
		c.by = 0
	}
	if c.over || c.paused() {
		return false
	}
	if c.s == nil {
		return c.connect()
	}
	if now := c.v.world.Now(); c.by == 0 {
		c.by = now + int64(30*time.Second)
	} else if now > c.by && c.head && c.excused == "" {
		if err := c.unpack(true); err != nil || now > c.by {
			c.fail("no events arrive, and there are some: %v; %s", err, c.state())
			return true
		}
	}
	if c.push() {
		did = true
	}
	if c.arrive() {
		did = true
	}
	if c.receive() {
		did = true
	}
	switch {
	case !did || c.over || c.s == nil:
	case c.d.OneIn(200):
		c.misbehave()
	case c.d.OneIn(200):
		c.pause(time.Second)
	}
	return did
}

func (c *sseClient) connect() bool {
	if c.left <= 0 {
		c.over = true
		return false
	}
	if !c.dial() {
		return true
	}
	c.conns++
	*c = sseClient{peer: c.peer, conns: c.conns, lastID: c.lastID, last: c.last, known: c.known,
		key: uint64(c.no*100_000 + c.conns)}
	c.out = fmt.Appendf(nil, "GET /%d HTTP/1.1\r\nHost: sim\r\n", c.key)
	if c.lastID != "" {
		c.out = fmt.Appendf(c.out, "Last-Event-ID: %s\r\n", c.lastID)
	}
	if c.d.IntN(2) == 0 {
		c.out = append(c.out, "Accept-Encoding: gzip\r\n"...)
	}
	c.out = append(c.out, "\r\n"...)
	return true
}

func (c *sseClient) misbehave() {
	if !c.calm && c.d.OneIn(4) {
		c.note("silent", 0, 0)
		c.excused = "silent"
		c.pause(4 * time.Minute)
		return
	}
	c.leave()
	c.s = nil
}

func (c *sseClient) receive() bool {
	did, err := c.pull()
	if !did {
		return false
	}
	for len(c.in) > 0 && !c.over {
		used, perr := c.parse(c.in)
		if perr == errPartial {
			break
		}
		if perr != nil {
			c.fail("%v; %s; in %.300q", perr, c.state(), c.in)
			return true
		}
		c.in = c.in[used:]
	}
	if len(c.in) == 0 {
		c.in = nil
	}
	if uerr := c.unpack(err != nil); uerr != nil && !c.over {
		c.fail("%v; %s", uerr, c.state())
		return true
	}
	if err != nil && !c.over {
		c.ended(err)
	} else if c.left <= 0 {
		c.leave()
		c.s = nil
	}
	return true
}

// parse reads the head or a chunk.
func (c *sseClient) parse(b []byte) (used int, err error) {
	if c.refused {
		return len(b), nil
	}
	if !c.head {
		end := bytes.Index(b, []byte("\r\n\r\n"))
		if end < 0 {
			return 0, errPartial
		}
		head := string(b[:end+2])
		if status := head[min(9, len(head)):min(12, len(head))]; status != "200" {
			if status != "408" && (status != "503" || !c.v.mayRefuse()) {
				return 0, errors.New("no status 200")
			}
			c.refused, c.excused = true, "refused"
			return len(b), nil
		}
		if !strings.Contains(head, "\r\nTransfer-Encoding: chunked\r\n") ||
			!strings.Contains(head, "\r\nContent-Type: text/event-stream\r\n") {
			return 0, errors.New("no event stream in chunks")
		}
		c.head, c.zip = true, strings.Contains(head, "\r\nContent-Encoding: gzip\r\n")
		c.note("open", int(c.key), int(c.last))
		return end + 4, nil
	}
	if c.final {
		return 0, errors.New("bytes after the last chunk")
	}
	i := bytes.Index(b, []byte("\r\n"))
	if i < 0 {
		return 0, errPartial
	}
	n, err := strconv.ParseUint(string(b[:i]), 16, 31)
	if err != nil {
		return 0, err
	}
	end := i + 2 + int(n)
	if len(b) < end+2 {
		return 0, errPartial
	}
	if string(b[end:end+2]) != "\r\n" {
		return 0, errors.New("no end of a chunk")
	}
	if n == 0 {
		c.final = true
	} else if c.zip {
		c.packed = append(c.packed, b[i+2:end]...)
	} else {
		c.text = append(c.text, b[i+2:end]...)
	}
	return end + 2, nil
}

// unpack takes the events that have arrived; all of them, or, if they are compressed, now and
// then: it unpacks all from the beginning.
func (c *sseClient) unpack(all bool) error {
	if c.zip && len(c.packed) > 0 && (all || c.final || 8*len(c.packed) > 9*c.unpacked) {
		c.unpacked = len(c.packed)
		r, err := gzip.NewReader(bytes.NewReader(c.packed))
		if err != nil {
			return err
		}
		b, err := io.ReadAll(r)
		if err != nil && (err != io.ErrUnexpectedEOF || c.final) {
			return fmt.Errorf("inflating: %w", err)
		}
		c.text = append(c.text, b[c.read:]...)
		c.read = len(b)
	}
	for c.left > 0 {
		i := bytes.Index(c.text, []byte("\n\n"))
		if i < 0 {
			break
		}
		block := string(c.text[:i+1])
		c.text = c.text[i+2:]
		if err := c.event(block); err != nil {
			return fmt.Errorf("%w in %.200q", err, block)
		}
	}
	if c.final && len(c.text) > 0 && c.left > 0 {
		return fmt.Errorf("the stream ends within an event: %.200q", c.text)
	}
	return nil
}

// event takes an event (WHATWG HTML section 9.2.6).
func (c *sseClient) event(block string) error {
	id, kind, has := "", "", false
	var b strings.Builder
	for line := range strings.Lines(block) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			kind = value
		case "data", "data:":
			if has {
				b.WriteByte('\n')
			}
			b.WriteString(value)
			has = true
		case "retry", ":", "":
		default:
			return errors.New("an unknown field")
		}
	}
	data := b.String()
	switch {
	case !has && id != "":
		// Where the client is: it had no ID.
		if c.lastID != "" {
			return errors.New("the client is told where it is, and has said that")
		}
		c.lastID = id
		_, n, _ := strings.Cut(id, "-")
		var err error
		c.last, err = strconv.ParseUint(n, 10, 64)
		c.known = true
		return err
	case !has:
	case kind == "joined":
		if c.joined = data; data == "true" && c.gap {
			return errors.New("the topic had all events, and some are missing")
		}
	case kind == "alone":
		var k int
		var n uint64
		fmt.Sscanf(data, "%d %d", &k, &n)
		if k <= c.alone || k != c.alone+1 && !c.v.sse.limited {
			return fmt.Errorf("event %d for one client follows %d", k, c.alone)
		}
		if c.alone = k; n > c.last && !c.v.sse.limited {
			return fmt.Errorf("before the event for one client there were %d events, and this has %d", n, c.last)
		}
	case kind == "shutdown":
		if !c.v.inside.Ending() {
			return errors.New("an end of the server that does not end")
		}
	case kind != "":
		return errors.New("an unknown type")
	default:
		return c.numbered(id, data)
	}
	return nil
}

// numbered takes an event of the topic.
func (c *sseClient) numbered(id, data string) error {
	first, _, _ := strings.Cut(data, "\n")
	n, err := strconv.ParseUint(first, 10, 64)
	if err != nil || data != c.v.sse.data(n) {
		return errors.New("the event is another")
	}
	if !strings.HasSuffix(id, "-"+first) {
		return errors.New("the ID is another")
	}
	switch {
	case !c.known && c.lastID == "":
		return errors.New("the client was not told where it is")
	case n <= c.last:
		return fmt.Errorf("event %d comes again, after %d", n, c.last)
	case n > c.last+1 && !c.v.sse.skips:
		if c.gap || c.joined == "true" {
			return fmt.Errorf("event %d follows %d", n, c.last)
		}
		c.gap = true // joined must say so
	}
	c.lastID, c.last, c.by = id, n, c.v.world.Now()+int64(30*time.Second)
	c.left--
	c.done++
	return nil
}

func (c *sseClient) ended(err error) {
	c.noteEnd("ended with bytes of a chunk and of an event", err, len(c.in), len(c.text))
	switch {
	case c.final && (c.v.inside.Ending() || c.v.sse.hasEnded(c.key)):
	case c.excused != "":
	case c.slow(err):
	case !c.head && c.mayEndUnanswered(err):
	default:
		c.fail("the stream ends: %v, last chunk %v; %s", err, c.final, c.state())
		return
	}
	c.s.Close()
	c.s = nil
	c.pause(100 * time.Millisecond)
}
