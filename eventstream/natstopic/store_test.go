package natstopic

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/testing/door"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/testing/topictest"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const history = 500

// startServer starts a nats-server in this process. port may be 0.
func startServer(t *testing.T, port int, dir string) *server.Server {
	t.Helper()
	if port == 0 {
		port = server.RANDOM_PORT
	}
	srv, err := newServer(port, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(srv) })
	return srv
}

func newServer(port int, dir string) (*server.Server, error) { return serverOf(options(port, dir)) }

func options(port int, dir string) *server.Options {
	return &server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true}
}

func serverOf(o *server.Options) (*server.Server, error) {
	srv, err := server.NewServer(o)
	if err != nil {
		return nil, err
	}
	srv.Start()
	if !srv.ReadyForConnections(time.Minute) {
		return nil, errors.New("nats-server does not start")
	}
	return srv, nil
}

func stop(srv *server.Server) {
	srv.Shutdown()
	srv.WaitForShutdown()
}

func open(t *testing.T, url string, o *Options) *Store {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := Open(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func setup(t *testing.T) *topictest.Setup {
	dir := t.TempDir()
	srv := startServer(t, 0, dir)
	addr := srv.Addr().String()
	port := portOf(srv)
	d := door.Open(t, addr)
	return &topictest.Setup{
		History:  history,
		CutEvery: 500 * time.Millisecond, // a publisher waits for Timeout after each
		Open: func(t *testing.T, queue int) topictest.Store {
			return open(t, "nats://"+d.Addr, &Options{Queue: queue, History: history, Timeout: time.Second})
		},
		Cut:  d.Cut,
		Away: d.Shut,
		Restart: func(lose bool) {
			stop(srv)
			if lose {
				dir = t.TempDir()
			}
			srv = startServer(t, port, dir)
		},
	}
}

func portOf(srv *server.Server) int { return srv.Addr().(*net.TCPAddr).Port }

// Clients move at random while the server is restarted: nothing that was stored is lost.
func TestRestarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv, err := newServer(server.RANDOM_PORT, dir)
	if err != nil {
		t.Fatal(err)
	}
	port := portOf(srv)
	t.Cleanup(func() { stop(srv) })
	restarts := 0
	topictest.Random(t, &topictest.Setup{
		History: history,
		Open: func(t *testing.T, queue int) topictest.Store {
			return open(t, fmt.Sprint("nats://127.0.0.1:", port), &Options{Queue: queue, History: history, Timeout: time.Second})
		},
		CutEvery: time.Second,
		Cut: func() {
			stop(srv)
			next, err := newServer(port, dir)
			if err != nil {
				t.Error(err)
				return
			}
			srv = next
			restarts++
		},
	})
	t.Log(restarts, " restarts")
}

func TestSuite(t *testing.T) { topictest.Run(t, setup) }

// The stream is deleted, and another process makes it again: clients get to know it, whether the first event of their
// topic in it has a lower sequence than the last that they got, or a higher one, or they have got none.
func TestStreamMadeAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ old, others int }{{3, 0}, {3, 10}, {0, 0}} {
		srv := startServer(t, 0, t.TempDir())
		s := &topictest.Setup{Open: func(t *testing.T, _ int) topictest.Store {
			return open(t, srv.ClientURL(), &Options{})
		}}
		a, b := s.Start(t, 0), s.Start(t, 0)
		c := a.Client("news", "")
		c.Announced()
		for range tt.old {
			b.Publish("news", "old")
			c.Wants("old")
		}
		store := b.Store.(*Store)
		if err := store.js.DeleteStream(t.Context(), store.o.Stream); err != nil {
			t.Fatal(err)
		}
		if _, err := store.stream(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range tt.others {
			b.Publish("other", "x")
		}
		b.Publish("news", "new")
		b.Publish("news", "newer")
		c.Wants("(gap)", "new", "newer")
		if gaps := a.Store.(*Store).Stats().Gaps; gaps != 1 {
			t.Errorf("%d gaps", gaps)
		}
	}
}

// The server comes back with an older state of the stream, whose sequences are used again: clients get to know it,
// whether their process is connected before that or after.
func TestOlderState(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{false, true} {
		dir, old := t.TempDir(), t.TempDir()
		srv := startServer(t, 0, dir)
		port, addr := portOf(srv), srv.Addr().String()
		d := door.Open(t, addr)
		at := func(addr string) *topictest.Instance {
			return (&topictest.Setup{Open: func(t *testing.T, _ int) topictest.Store {
				return open(t, "nats://"+addr, &Options{})
			}}).Start(t, 0)
		}
		b := at(addr)
		b.Publish("other", "x")
		stop(srv)
		if err := os.CopyFS(old, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		srv = startServer(t, port, dir)
		a := at(d.Addr)
		c := a.Client("news", "")
		c.Announced()
		b.Eventually("news", "one")
		c.Wants("one")
		d.Shut(true)
		stop(srv)
		startServer(t, port, old)
		if before {
			d.Shut(false)
			servertest.Eventually(t, "the loss to be seen", func() bool { return a.Store.(*Store).Stats().Gaps == 1 })
		}
		b.Eventually("news", "two")
		d.Shut(false)
		if c.Wants("(gap)"); before { // else that is what the client is told of, since its ID is that of "one"
			c.Wants("two")
		}
		b.Publish("news", "three")
		c.Wants("three")
	}
}

// What a message shows of the stream.
func TestMessage(t *testing.T) {
	t.Parallel()
	const maxAge = time.Minute
	s := open(t, startServer(t, 0, t.TempDir()).ClientURL(), &Options{MaxAge: maxAge})
	for range 4 {
		if _, err := (&topic{s: s, token: "other"}).Publish(eventstream.Event{Data: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	s.r.missed()
	servertest.Eventually(t, "the end to be seen", func() bool { return s.end.Load().seq == 4 })
	now := time.Now()
	for _, tt := range []struct {
		name            string
		cursor          uint64
		seq, last       string
		age             time.Duration // of the newest before it
		verified, dirty bool
	}{
		{"first", 0, "5", "0", 0, true, false},
		{"next", 3, "5", "3", time.Second, false, false},
		{"again", 3, "3", "2", 0, false, false},
		{"sequence used again", 3, "3", "2", time.Second, true, true},
		{"newest dropped", 3, "5", "2", time.Second, true, false},
		{"newest expired", 3, "5", "0", maxAge, false, false},
		{"newest expired, of another stream", 3, "4", "0", maxAge, true, false},
		{"one missed", 3, "5", "4", time.Second, false, true},
	} {
		src := &topic{s: s, token: "news", cursor: tt.cursor, at: now.Add(-tt.age)}
		var err error
		if _, src.mirror, err = eventstream.NewMirror(src, &s.o.Topics); err != nil {
			t.Fatal(err)
		}
		r := newReader(s) // which is not started
		r.active[src.token] = src
		m := nats.NewMsg("chert.live.news")
		m.Header.Set("Nats-Sequence", tt.seq)
		m.Header.Set("Nats-Last-Sequence", tt.last)
		m.Header.Set("Nats-Time-Stamp", now.Format(time.RFC3339Nano))
		r.message(m)
		if verified := r.stream != nil; verified != tt.verified || r.dirty[src] != tt.dirty {
			t.Errorf("%s: verified %v, dirty %v", tt.name, verified, r.dirty[src])
		}
	}
}

// The newest event of a topic expires: clients have missed nothing, unless their process could not read for as long.
func TestMaxAge(t *testing.T) {
	t.Parallel()
	srv := startServer(t, 0, t.TempDir())
	d := door.Open(t, srv.Addr().String())
	at := func(addr string) *topictest.Instance {
		return (&topictest.Setup{Open: func(t *testing.T, _ int) topictest.Store {
			return open(t, "nats://"+addr, &Options{MaxAge: 4 * time.Second})
		}}).Start(t, 0)
	}
	a, b := at(d.Addr), at(srv.Addr().String())
	store := b.Store.(*Store)
	expire := func() {
		t.Helper()
		servertest.Eventually(t, "the event to expire", func() bool {
			st, err := store.stream(t.Context())
			return err == nil && st.CachedInfo().State.Msgs == 0
		})
	}
	c, quiet := a.Client("news", ""), a.Client("quiet", "")
	c.Announced()
	quiet.Announced()
	b.Publish("news", "one")
	c.Wants("one")
	expire()
	d.Cut()
	a.Eventually("news", "two")
	c.Wants("two")
	d.Shut(true)
	b.Publish("news", "missed")
	b.Publish("quiet", "missed")
	expire()
	d.Shut(false)
	a.Eventually("news", "three")
	c.Wants("(gap)", "three")
	a.Eventually("quiet", "four")
	quiet.Wants("(gap)", "four")
}

// A client comes again soon after all events have expired: it has missed nothing, however small MaxAge is, but where
// it was before them it has.
func TestMaxAgeComesAgain(t *testing.T) {
	t.Parallel()
	srv := startServer(t, 0, t.TempDir())
	s := &topictest.Setup{Open: func(t *testing.T, _ int) topictest.Store {
		return open(t, srv.ClientURL(), &Options{MaxAge: time.Second})
	}}
	a := s.Start(t, 0)
	c := a.Client("news", "")
	start := c.Announced()
	a.Publish("news", "one")
	a.Publish("news", "two")
	c.Wants("one", "two")
	c.Close()
	a.Publish("other", "x")
	topic, _ := a.Topic("news")
	store := a.Store.(*Store)
	servertest.Eventually(t, "the client to be gone, and the events", func() bool {
		st, err := store.stream(t.Context())
		return topic.Len() == 0 && err == nil && st.CachedInfo().State.Msgs == 0
	})
	for range 2 {
		end := store.end.Load()
		servertest.Eventually(t, "the stream to be looked at", func() bool { return store.end.Load() != end })
	}
	s.Start(t, 0).Client("news", start).Wants("(gap)") // on a process that does not know the topic
	c = a.Client("news", c.Last)
	a.Publish("news", "three")
	c.Wants("three")
}

// A topic cannot be caught up, since the stream has as many consumers as it may have: others do not wait for it.
func TestTopicThatFails(t *testing.T) {
	t.Parallel()
	srv := startServer(t, 0, t.TempDir())
	s := &topictest.Setup{Open: func(t *testing.T, _ int) topictest.Store { return open(t, srv.ClientURL(), &Options{}) }}
	other := open(t, srv.ClientURL(), &Options{Stream: "other"})
	if err := other.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	st, err := other.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "chert", Subjects: []string{"chert.topic.>"},
		MaxConsumers: 1, RePublish: &jetstream.RePublish{Source: "chert.topic.>", Destination: "chert.live.>"}})
	if err != nil {
		t.Fatal(err)
	}
	a, b := s.Start(t, 0), s.Start(t, 0)
	c := a.Client("news", "")
	c.Announced()
	a.Client("fails", "").Announced()
	if _, err := st.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "d"}); err != nil {
		t.Fatal(err)
	}
	a.Client("fails", "9999999999999-1") // has it caught up
	servertest.Eventually(t, "that to fail", func() bool { return a.Store.(*Store).Stats().Away })
	var all []string
	for i := range 50 {
		all = append(all, fmt.Sprint(i))
		b.Publish("news", all[i])
	}
	began := time.Now()
	if c.Wants(all...); time.Since(began) > 20*time.Second { // of 50 s, if each waits
		t.Errorf("they took %v", time.Since(began))
	}
}

// More events come than there is room for, again and again: clients get all.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	srv := startServer(t, 0, t.TempDir())
	s := &topictest.Setup{Open: func(t *testing.T, _ int) topictest.Store {
		return open(t, srv.ClientURL(), &Options{History: 5000, room: 1})
	}}
	a, b := s.Start(t, 0), s.Start(t, 0).Store.(*Store)
	c := a.Client("news", "")
	c.Announced()
	subject := b.o.Stream + ".topic." + base64.RawURLEncoding.EncodeToString([]byte("news"))
	for range 60 {
		var all []string
		for n := range 40 { // without waiting for each
			all = append(all, fmt.Sprint(n))
			if err := b.nc.Publish(subject, []byte(all[n])); err != nil {
				t.Fatal(err)
			}
		}
		c.Wants(all...)
	}
}

// Whether an event has been stored is looked for in what has followed the end of the stream before.
func TestHas(t *testing.T) {
	t.Parallel()
	s := open(t, startServer(t, 0, t.TempDir()).ClientURL(), &Options{})
	src := &topic{s: s, token: "news"}
	for range 2 {
		if _, err := src.Publish(eventstream.Event{Data: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	s.r.missed()
	servertest.Eventually(t, "the end to be seen", func() bool { return s.end.Load().seq == 2 })
	epoch := s.end.Load().epoch
	for _, tt := range []struct {
		token string
		after place
		want  bool
	}{
		{"-1", place{epoch, 0}, true},
		{"-1", place{epoch, 1}, false},
		{"-1", place{epoch - 1, 1}, true}, // of another stream
		{"-1", place{}, true},
		{"-2", place{epoch, 1}, true},
		{"-2", place{epoch, 2}, false},
		{"-3", place{}, false},
	} {
		if got, err := src.has(s.instance+tt.token, &tt.after); got != tt.want || err != nil {
			t.Errorf("%s after %v: %v, %v", tt.token, tt.after, got, err)
		}
	}
}

// NATS fails and responds again: a line for each.
func TestLines(t *testing.T) {
	t.Parallel()
	d := door.Open(t, startServer(t, 0, t.TempDir()).Addr().String())
	var log servertest.Log
	s := open(t, "nats://"+d.Addr, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.Shut(true)
	servertest.Eventually(t, "NATS to be missed", func() bool { return s.Stats().Away })
	if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("got %v", err)
	}
	d.Shut(false)
	wantsLines(t, s, &log)
}

// wantsLines waits until NATS is found, of which there is a line, and one before.
func wantsLines(t *testing.T, s *Store, log *servertest.Log) {
	t.Helper()
	servertest.Eventually(t, "NATS to be found", func() bool { return !s.Stats().Away })
	servertest.Eventually(t, "that to be logged", func() bool { return strings.Count(log.String(), "\n") >= 2 })
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "event streams: NATS fails; clients stay") ||
		!strings.Contains(lines[1], "responds again") {
		t.Errorf("%q", lines)
	}
}

// A client gets what is published once it has joined, also while the topic cannot be read. If that is more than the
// stream keeps it gets a gap.
func TestJoinedBeforeLoad(t *testing.T) {
	t.Parallel()
	for _, maxAge := range []time.Duration{0, time.Hour} {
		srv := startServer(t, 0, t.TempDir())
		at := func(addr string) *topictest.Instance {
			s := &topictest.Setup{Open: func(t *testing.T, queue int) topictest.Store {
				return open(t, "nats://"+addr, &Options{History: 10, MaxAge: maxAge})
			}}
			return s.Start(t, 0)
		}
		d := door.Open(t, srv.Addr().String())
		a, b := at(d.Addr), at(srv.Addr().String())
		servertest.Eventually(t, "the stream to be known", func() bool { return a.Store.(*Store).Check(t.Context()) == nil })
		d.Shut(true)
		news, many := a.Client("news", ""), a.Client("many", "")
		for range 2 {
			<-a.Joined
		}
		b.Publish("news", "one")
		for n := range 15 {
			b.Publish("many", fmt.Sprint(n))
		}
		d.Shut(false)
		a.Eventually("news", "two")
		news.Wants("one", "two")
		many.Wants("(gap)", "5")
	}
}

// What was stored before a client joined, by the server's clock, is not for it.
func TestSinceBy(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var all []stored
	for n := range 3 {
		all = append(all, stored{seq: uint64(10 * n), at: now.Add(time.Duration(n) * time.Second)}) // of 0, 1 and 2 s
	}
	for _, tt := range []struct {
		all          []stored
		joined, skew time.Duration
		want         string
	}{
		{all, -time.Second, 0, "7-0"},
		{all, time.Second / 2, 0, "7-0"},
		{all[1:], 0, 0, "7-0"},
		{all, 3 * time.Second / 2, 0, "7-10"},
		{all, time.Second / 2, time.Second, "7-10"},
		{all, 3 * time.Second / 2, -time.Second, "7-0"},
		{all, time.Hour, 0, "7-20"},
		{nil, 0, 0, "base"},
	} {
		if got := sinceBy(tt.all, 7, "base", tt.skew)(now.Add(tt.joined)); got != tt.want {
			t.Errorf("%d events, joined after %v, skew %v: %q, want %q", len(tt.all), tt.joined, tt.skew, got, tt.want)
		}
	}
}

// NATS is not there when the store is opened.
func TestNotThereYet(t *testing.T) {
	t.Parallel()
	d := door.Open(t, startServer(t, 0, t.TempDir()).Addr().String())
	d.Shut(true)
	var log servertest.Log
	s := open(t, "nats://"+d.Addr, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if !s.Stats().Away || strings.Count(log.String(), "NATS fails") != 1 {
		t.Errorf("%+v, %q", s.Stats(), log.String())
	}
	d.Shut(false)
	wantsLines(t, s, &log)
}

// JetStream does not respond, though there is a connection.
func TestWithoutJetStream(t *testing.T) {
	t.Parallel()
	srv, err := serverOf(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(srv)
	var log servertest.Log
	s := open(t, srv.ClientURL(), &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	servertest.Eventually(t, "NATS to be missed", func() bool { return s.Stats().Away })
	if err := srv.EnableJetStream(&server.JetStreamConfig{StoreDir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	wantsLines(t, s, &log)
	if s.Stats().Cuts > 0 {
		t.Errorf("%+v", s.Stats())
	}
}

// NATS refuses the password for some time, which is no end of the connection.
func TestPassword(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func(port int, password string) *server.Server {
		o := options(port, dir)
		o.Username, o.Password = "u", password
		srv, err := serverOf(o)
		if err != nil {
			t.Fatal(err)
		}
		return srv
	}
	srv := start(server.RANDOM_PORT, "good")
	defer func() { stop(srv) }()
	port := portOf(srv)
	var log servertest.Log
	s := open(t, fmt.Sprint("nats://u:good@127.0.0.1:", port), &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop(srv)
	srv = start(port, "other")
	servertest.Eventually(t, "the password to be refused twice", func() bool {
		v, err := srv.Varz(nil)
		return err == nil && v.TotalConnections >= 3
	})
	if !s.Stats().Away {
		t.Error("NATS is not missed")
	}
	stop(srv)
	srv = start(port, "good")
	wantsLines(t, s, &log)
}

// An event that is larger than NATS accepts is refused, and others do not wait behind it.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	s := open(t, startServer(t, 0, t.TempDir()).ClientURL(), &Options{Queue: 3})
	topic, err := s.Topic("news")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := topic.Publish(eventstream.Event{Data: strings.Repeat("x", 2<<20)}); !errors.Is(err, nats.ErrMaxPayload) {
		t.Errorf("got %v", err)
	}
	if id, err := topic.Publish(eventstream.Event{Data: "x"}); id == "" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}

// What cannot work is refused when it is opened.
func TestBadOptions(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]*Options{
		"Stream":   {Stream: "a.b"},
		"Replicas": {Replicas: 6},
		"Timeout":  {Timeout: 1},
	} {
		if _, err := Open("nats://127.0.0.1:1", o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	s := open(t, "nats://127.0.0.1:1", &Options{})
	for _, bad := range []string{"", strings.Repeat("x", 513)} {
		if _, err := s.Topic(bad); err == nil {
			t.Errorf("%q is a topic", bad)
		}
	}
	s.Close()
	if _, err := s.Topic("x"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// The time after which clients are to come back arrives, however long it is.
func TestRetry(t *testing.T) {
	t.Parallel()
	for _, want := range []time.Duration{time.Second, 40 * 24 * time.Hour, math.MaxInt64} {
		want = want.Truncate(time.Millisecond)
		h := nats.Header{fieldRetry: {fmt.Sprint(want.Milliseconds())}}
		if got := events([]stored{{header: h}}, 1)[0].Retry; got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// A type arrives with the spaces that it begins and ends with.
func TestSpacedType(t *testing.T) {
	t.Parallel()
	s := open(t, startServer(t, 0, t.TempDir()).ClientURL(), &Options{})
	src := &topic{s: s, token: "news"}
	for _, want := range []string{"a b", " a\tb ", "\ta", " ", `"a"`, ` "a\"`, " \xff"} {
		if _, err := src.Publish(eventstream.Event{Type: want}); err != nil {
			t.Fatal(err)
		}
		st, err := s.js.Stream(t.Context(), s.o.Stream)
		if err != nil {
			t.Fatal(err)
		}
		m, err := st.GetLastMsgForSubject(t.Context(), src.subject())
		if err != nil {
			t.Fatal(err)
		}
		if got := events([]stored{{header: m.Header}}, 1)[0].Type; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
