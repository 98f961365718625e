package redisstream

import (
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/door"
	"github.com/chert-http/chert/internal/testing/redistest"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

// log is a Sink that notes what it gets.
type log struct {
	mu     sync.Mutex
	lines  []string
	unused bool
	loads  int
}

func (l *log) add(what string, all []Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range all {
		l.lines = append(l.lines, what+" "+e.Values["n"].(string))
	}
}

func (l *log) Load(_ string, all []Entry, _ func(time.Time) string) {
	l.mu.Lock()
	l.loads++
	l.mu.Unlock()
	l.add("load", all)
}
func (l *log) Append(more []Entry) { l.add("append", more) }
func (l *log) Lost(all []Entry)    { l.add("lost", all) }
func (l *log) Mark()               {}
func (l *log) Current()            {}
func (l *log) Unload() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unused
}

func (l *log) has(t *testing.T, want ...string) {
	t.Helper()
	servertest.Eventually(t, strings.Join(want, ", "), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return strings.Join(l.lines, ",") == strings.Join(want, ",")
	})
}

func client(t *testing.T, srv *redistest.Server) *Client {
	t.Helper()
	return clientOf(t, srv.URL(), time.Hour)
}

func clientOf(t *testing.T, url string, expire time.Duration) *Client {
	t.Helper()
	c, err := Open(url, Options{Prefix: "p:", What: "test", MaxLen: 100, Timeout: 10 * time.Second, Expire: expire,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func put(t *testing.T, s *Stream, n string) {
	t.Helper()
	if _, err := s.Add("n", n); err != nil {
		t.Fatal(err)
	}
}

// A stream that is not wanted any more is not read until it is wanted again.
func TestUnload(t *testing.T) {
	t.Parallel()
	c := client(t, redistest.Start(t))
	c.lookEvery = time.Millisecond
	l, other := &log{}, &log{}
	s, o := c.Stream("s", l), c.Stream("o", other)
	put(t, s, "1")
	s.Wanted()
	o.Wanted()
	l.has(t, "load 1")
	put(t, s, "2")
	l.has(t, "load 1", "append 2")
	l.mu.Lock()
	l.unused = true
	l.mu.Unlock()
	servertest.Eventually(t, "one stream to be read", func() bool {
		put(t, o, "x") // ends the command
		return c.Stats().Streams == 1
	})
	put(t, s, "3")
	l.has(t, "load 1", "append 2")
	l.mu.Lock()
	l.unused = false
	l.mu.Unlock()
	s.Wanted()
	l.has(t, "load 1", "append 2", "load 1", "load 2", "load 3")
}

// One command reads many streams, which are added while it blocks.
func TestManyStreams(t *testing.T) {
	t.Parallel()
	c := client(t, redistest.Start(t))
	var logs []*log
	var streams []*Stream
	for i := range 600 {
		logs = append(logs, &log{})
		streams = append(streams, c.Stream(fmt.Sprint(i), logs[i]))
		streams[i].Wanted()
	}
	servertest.Eventually(t, "all to be read", func() bool { return c.Stats().Streams == len(streams) })
	for _, s := range streams {
		put(t, s, "1")
	}
	for _, l := range logs {
		l.has(t, "append 1")
	}
	if s := c.Stats(); s.Read != uint64(len(streams)) || s.Published != uint64(len(streams)) {
		t.Errorf("%+v", s)
	}
}

// A stream expires: that it is not there after a cut is no loss, unless the cut has lasted for as long:
// then also if nothing has been read of it before.
func TestExpired(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	d := door.Open(t, srv.Addr)
	c := clientOf(t, "redis://"+d.Addr, 4*time.Second)
	l := &log{}
	s, quiet := c.Stream("s", l), c.Stream("quiet", &log{})
	s.Wanted()
	quiet.Wanted()
	servertest.Eventually(t, "both to be read", func() bool { return c.Stats().Streams == 2 })
	put(t, s, "1")
	l.has(t, "append 1")
	expired := func() bool { return srv.Must("EXISTS", s.key, quiet.key) == "0" }
	servertest.Eventually(t, "the stream to expire", expired)
	d.Cut()
	servertest.Eventually(t, "Redis to respond", func() bool {
		_, err := s.Add("n", "2")
		return err == nil
	})
	l.has(t, "append 1", "append 2")
	if got := c.Stats(); got.Cuts == 0 || got.Gaps != 0 {
		t.Errorf("%+v", got)
	}
	d.Shut(true)
	for _, key := range []string{s.key, quiet.key} {
		srv.Must("XADD", key, "*", "n", "missed")
		srv.Must("PEXPIRE", key, "4000")
	}
	servertest.Eventually(t, "both to expire", expired)
	d.Shut(false)
	servertest.Eventually(t, "the losses to be seen", func() bool { return c.Stats().Gaps == 2 })
}

// A stream that has expired comes back in an older state: that is a loss.
func TestExpiredOlderState(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	d := door.Open(t, srv.Addr)
	c := clientOf(t, "redis://"+d.Addr, 4*time.Second)
	l := &log{}
	s := c.Stream("s", l)
	s.Wanted()
	servertest.Eventually(t, "it to be read", func() bool { return c.Stats().Streams == 1 })
	put(t, s, "1")
	l.has(t, "append 1")
	servertest.Eventually(t, "the stream to expire", func() bool { return srv.Must("EXISTS", s.key) == "0" })
	srv.Must("XADD", s.key, "1-1", "n", "old")
	d.Cut()
	l.has(t, "append 1", "lost old")
}

// Streams that take too long to be loaded together are loaded one by one.
func TestLoadTooMuch(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	d := door.Open(t, srv.Addr)
	d.Limit(4 << 20)
	c := clientOf(t, "redis://"+d.Addr, time.Hour)
	var streams []*Stream
	for n := range loadAtOnce {
		streams = append(streams, c.Stream(fmt.Sprint(n), &log{}))
		srv.Must("EVAL", `for n = 1, 100 do
			redis.call('XADD', KEYS[1], '*', 'n', string.rep('x', 10000))
		end`, "1", streams[n].key)
	}
	for _, s := range streams {
		s.Wanted()
	}
	servertest.Eventually(t, "all to be read", func() bool { return c.Stats().Streams == len(streams) })
}

// A stream that takes too long to be loaded at once is loaded in parts, so that it does not keep others from being read.
func TestLoadInParts(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := client(t, srv)
	c.o.MaxLen = 2*perStream + 100
	r := c.readers[0]
	conn := c.redis.(*redis.Client).Conn()
	defer conn.Close()
	s := c.Stream("s", nil)
	load := func(bad int) newest {
		t.Helper()
		r.bad = bad
		all, _, err := r.newest(conn, []*Stream{s})
		if err != nil {
			t.Fatal(err)
		}
		return all[0]
	}
	for _, size := range []int{0, 1, perStream - 1, 1, 1, perStream - 1, 1, 98, 1, 1, 1000} { // more each time
		burst(srv, s, 0, size)
		whole := load(0)
		srv.Must("CONFIG", "RESETSTAT")
		parts := load(2)
		if !reflect.DeepEqual(whole, parts) {
			t.Errorf("%d entries from %s on, in parts %d from %s on", len(whole.entries), whole.base, len(parts.entries), parts.base)
		}
		_, calls, _ := strings.Cut(srv.Must("INFO", "commandstats"), "cmdstat_xrevrange:calls=")
		calls, _, _ = strings.Cut(calls, ",")
		if n, err := strconv.Atoi(calls); err != nil || n <= len(parts.entries)/(perStream+1) {
			t.Errorf("%d entries by %d commands, %v", len(parts.entries), n, err)
		}
	}
	srv.Must("XTRIM", s.key, "MAXLEN", "700") // what is older is not known
	if n := load(2); len(n.entries) != 700 || !n.dropped {
		t.Errorf("%d entries of 700, %v", len(n.entries), n.dropped)
	}
}

// burst writes entries from..to-1 at one moment, as many processes do while a reader does not run.
func burst(srv *redistest.Server, s *Stream, from, to int) {
	srv.Must("EVAL", `for n = ARGV[1], ARGV[2] - 1 do
		redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[3], '*', 'n', string.format('%d', n))
	end`, "1", s.key, fmt.Sprint(from), fmt.Sprint(to), fmt.Sprint(s.c.o.MaxLen))
}

// Entries that are dropped before they can be read are a loss, which the sink gets to know, with those that are kept.
// That those are dropped that have been read is none.
func TestMissed(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := client(t, srv)
	l := &log{}
	s := c.Stream("s", l)
	s.Wanted()
	servertest.Eventually(t, "it to be read", func() bool { return c.Stats().Streams == 1 })
	var want []string
	n := 0
	for range 20 {
		burst(srv, s, n, n+100)
		for range 100 {
			want = append(want, "append "+fmt.Sprint(n))
			n++
		}
		l.has(t, want...)
	}
	if got := c.Stats().Gaps; got != 0 {
		t.Errorf("%d gaps where nothing is missing", got)
	}
	burst(srv, s, n, n+350)
	for k := n + 250; k < n+350; k++ {
		want = append(want, "lost "+fmt.Sprint(k))
	}
	l.has(t, want...)
	burst(srv, s, n+350, n+450)
	for k := n + 350; k < n+450; k++ {
		want = append(want, "append "+fmt.Sprint(k))
	}
	l.has(t, want...)
	if got := c.Stats().Gaps; got != 1 {
		t.Errorf("%d gaps", got)
	}
	// Another stream, which begins to count at 0.
	srv.Must("DEL", s.key)
	burst(srv, s, n+450, n+800)
	for k := n + 700; k < n+800; k++ {
		want = append(want, "lost "+fmt.Sprint(k))
	}
	l.has(t, want...)
	burst(srv, s, n+800, n+900)
	for k := n + 800; k < n+900; k++ {
		want = append(want, "append "+fmt.Sprint(k))
	}
	l.has(t, want...)
	if got := c.Stats().Gaps; got != 2 {
		t.Errorf("%d gaps", got)
	}
}

// A key that is something else than a stream, at first or later, does not keep others from being read. It is read once it
// is a stream.
func TestForeignKey(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	var out servertest.Log
	c := client(t, srv)
	c.lookEvery = time.Millisecond
	c.o.Logger = slog.New(slog.NewTextHandler(&out, nil))
	lone, early, late, other := &log{}, &log{}, &log{}, &log{}
	first, e, l, o := c.Stream("first", lone), c.Stream("early", early), c.Stream("late", late), c.Stream("other", other)
	srv.Must("SET", first.key, "x")
	srv.Must("SET", e.key, "x")
	first.Wanted()
	logged := func(n int) func() bool {
		return func() bool { return strings.Count(out.String(), "is not a stream") == n }
	}
	servertest.Eventually(t, "the first to be left out", logged(1))
	srv.Must("DEL", first.key)
	servertest.Eventually(t, "the first to be read", func() bool { return c.Stats().Streams == 1 })
	for _, s := range []*Stream{e, l, o} {
		s.Wanted()
	}
	servertest.Eventually(t, "three to be read", func() bool { return c.Stats().Streams == 3 })
	put(t, l, "1")
	late.has(t, "append 1")
	srv.Must("SET", l.key, "x")
	put(t, o, "1")
	other.has(t, "append 1")
	servertest.Eventually(t, "two to be read", func() bool {
		put(t, first, "x") // ends the command
		return c.Stats().Streams == 2
	})
	put(t, o, "2")
	other.has(t, "append 1", "append 2")
	for _, s := range []*Stream{e, l} {
		srv.Must("XADD", "new", "*", "n", "2")
		srv.Must("RENAME", "new", s.key)
	}
	early.has(t, "load 2")
	late.has(t, "append 1", "lost 2")
	if !logged(3)() || !strings.Contains(out.String(), e.key) || !strings.Contains(out.String(), l.key) || c.Stats().Away {
		t.Errorf("%q, %+v", out.String(), c.Stats())
	}
}

// All keys of a reader are something else than streams when Redis responds again: it is not away. Streams are read once
// they are some, also while others are wanted.
func TestForeignKeysOnly(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	d := door.Open(t, srv.Addr)
	c := clientOf(t, "redis://"+d.Addr, time.Hour)
	c.lookEvery = 100 * time.Millisecond
	l := &log{}
	s := c.Stream("s", l)
	s.Wanted()
	put(t, s, "1")
	servertest.Eventually(t, "it to be read", func() bool { return c.Stats().Streams == 1 })
	d.Shut(true)
	servertest.Eventually(t, "Redis to be missed", func() bool { return c.Stats().Away })
	srv.Must("SET", s.key, "x")
	d.Shut(false)
	servertest.Eventually(t, "Redis to be found", func() bool { return !c.Stats().Away })
	srv.Must("XADD", "new", "*", "n", "2")
	srv.Must("RENAME", "new", s.key)
	n := 0
	servertest.Eventually(t, "the stream to be read", func() bool {
		o := c.Stream(fmt.Sprint(n), &log{})
		srv.Must("SET", o.key, "x")
		o.Wanted()
		n++
		return c.Stats().Gaps == 1
	})
}

func TestCompare(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want int
		ok   bool
	}{
		{"1-1", "1-1", 0, true},
		{"1-1", "1-2", -1, true},
		{"2-1", "1-2", 1, true},
		{"10-0", "9-0", 1, true}, // numbers, not text
		{"18446744073709551615-18446744073709551615", "0-0", 1, true},
		{"18446744073709551616-0", "0-0", 0, false},
		{"1", "1-1", 0, false},
		{"", "", 0, false},
		{"-1", "1-1", 0, false},
		{"1-", "1-1", 0, false},
		{"+1-1", "1-1", 0, false},
		{"1-+1", "1-1", 0, false},
		{"1-1-1", "1-1", 0, false},
		{"1 -1", "1-1", 0, false},
	} {
		if got, ok := Compare(tt.a, tt.b); got != tt.want || ok != tt.ok {
			t.Errorf("%q, %q: %d, %v", tt.a, tt.b, got, ok)
		}
	}
}

// What cannot work is refused when it is opened.
func TestBadOptions(t *testing.T) {
	t.Parallel()
	good := Options{Prefix: "p:", Timeout: time.Second}
	for _, tt := range []struct {
		url  string
		bad  func(*Options)
		want string
	}{
		{"redis://h", func(o *Options) { o.Prefix = "a b" }, "Prefix"},
		{"redis://h", func(o *Options) { o.Prefix = "{" }, "Prefix"},
		{"redis://h", func(o *Options) { o.Shards = -1 }, "Shards"},
		{"redis://h", func(o *Options) { o.Shards = 5000 }, "Shards"},
		{"redis://h", func(o *Options) { o.Timeout = 1 }, "Timeout"},
		{"redis://h", func(o *Options) { o.Expire = 1 }, "Expire"},
		{"http://:secret@h", func(o *Options) {}, "want redis://"},
	} {
		o := good
		tt.bad(&o)
		if _, err := Open(tt.url, o); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", tt.want, err)
		}
	}
}
