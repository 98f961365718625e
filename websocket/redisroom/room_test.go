package redisroom

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/door"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/redistest"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/websocket"
	gorilla "github.com/gorilla/websocket"
)

func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

// instance is a process with connections.
type instance struct {
	*Store
	t     *testing.T
	ts    *engines.Server
	conns chan *websocket.Conn // that were opened
}

// start starts one. Messages begin with their IDs if there is a history.
func start(t *testing.T, url string, o Options) *instance {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Gap = "gap"
	if o.History > 0 && o.Encode == nil {
		o.Encode = func(id string, t websocket.Type, p []byte) (websocket.Type, []byte) {
			return t, append([]byte(id+" "), p...)
		}
	}
	s, err := OpenURL(url, &o)
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{Store: s, t: t, conns: make(chan *websocket.Conn, 100)}
	h, err := websocket.New(&websocket.Options{OnOpen: func(c *websocket.Conn, r *http.Request) {
		i.conns <- c
		q := r.URL.Query()
		if name := q.Get("room"); name != "" {
			room, err := s.Room(name)
			if err == nil {
				err = room.Join(c, &JoinOptions{User: q.Get("user"), After: q.Get("after")})
			}
			if err != nil {
				t.Error(err)
			}
		} else if err := s.Connect(c, q.Get("user")); err != nil {
			t.Error(err)
		}
		c.Send(websocket.TypeText, []byte("joined"))
	}})
	if err != nil {
		t.Fatal(err)
	}
	i.ts = engines.Start(t, &chert.Server{Handler: h})
	t.Cleanup(func() { s.Close() })
	return i
}

func (i *instance) room(name string) *Room {
	i.t.Helper()
	r, err := i.Room(name)
	if err != nil {
		i.t.Fatal(err)
	}
	return r
}

func (i *instance) say(room, text string) {
	i.t.Helper()
	servertest.Eventually(i.t, "the store to accept "+text, func() bool {
		_, err := i.room(room).Broadcast(websocket.TypeText, []byte(text))
		return err == nil
	})
}

// client is a connection.
type client struct {
	*gorilla.Conn
	t    *testing.T
	last string
}

func (i *instance) client(query string) *client {
	i.t.Helper()
	conn, _, err := gorilla.DefaultDialer.Dial("ws://"+i.ts.ListenAddr+"/?"+query, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(func() { conn.Close() })
	return &client{Conn: conn, t: i.t}
}

// wants waits for messages, in order and with nothing between. "joined" comes anywhere.
func (c *client) wants(all ...string) {
	c.t.Helper()
	for _, want := range all {
		got := c.next()
		if got == "joined" && want != "joined" {
			got = c.next()
		}
		if id, text, ok := strings.Cut(got, " "); ok && strings.Contains(id, "-") {
			c.last, got = id, text
		}
		if got != want {
			c.t.Fatalf("got %q, want %q", got, want)
		}
	}
}

func (c *client) next() string {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(time.Minute))
	_, p, err := c.ReadMessage()
	if err != nil {
		c.t.Fatal(err)
	}
	return string(p)
}

// A message reaches the room on all processes, and no other room.
func TestRoom(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	a, b := start(t, srv.URL(), Options{}), start(t, srv.URL(), Options{})
	ca, cb, other := a.client("room=lobby"), b.client("room=lobby"), b.client("room=other")
	for _, c := range []*client{ca, cb, other} {
		c.wants("joined")
	}
	loaded(a, 1)
	loaded(b, 2)
	for n := range 20 {
		a.say("lobby", fmt.Sprint("a ", n))
		b.say("lobby", fmt.Sprint("b ", n))
	}
	b.say("other", "only here")
	for n := range 20 {
		ca.wants(fmt.Sprint("a ", n), fmt.Sprint("b ", n))
		cb.wants(fmt.Sprint("a ", n), fmt.Sprint("b ", n))
	}
	other.wants("only here")
	if _, err := a.room("lobby").Broadcast(websocket.TypeBinary, []byte{0, 255}); err != nil {
		t.Fatal(err)
	}
	if kind, p, err := cb.ReadMessage(); kind != gorilla.BinaryMessage || string(p) != "\x00\xff" || err != nil {
		t.Errorf("%v, %q, %v", kind, p, err)
	}
	if _, err := a.room("lobby").Broadcast(7, nil); err == nil {
		t.Error("a message of no type was sent")
	}
}

// A connection gets what is sent once it has joined, also while the room cannot be read.
func TestJoinedBeforeLoad(t *testing.T) {
	t.Parallel()
	for _, history := range []int{0, 2} {
		srv := redistest.Start(t)
		d := door.Open(t, srv.Addr)
		a, b := start(t, "redis://"+d.Addr, Options{History: history}), start(t, srv.URL(), Options{History: history})
		srv.Must("XADD", "chert:room:{0}lobby", "1-1", fieldText, "long ago")
		d.Shut(true)
		c := a.client("room=lobby")
		c.wants("joined")
		if n := a.room("lobby").Len(); n != 1 {
			t.Errorf("%d connections in the room", n)
		}
		for n := range 5 {
			b.say("lobby", fmt.Sprint(n))
		}
		d.Shut(false)
		c.wants("0", "1", "2", "3", "4")
		a.say("lobby", "more")
		c.wants("more")
		if n := a.room("lobby").Len(); n != 1 {
			t.Errorf("%d connections in the room", n)
		}
	}
}

// A connection that leaves while what it has missed is about to be sent has left.
func TestLeaveWhileLoading(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	d := door.Open(t, srv.Addr)
	opened, left := make(chan *instance, 1), make(chan bool)
	a := start(t, "redis://"+d.Addr, Options{History: 10, Encode: func(_ string, t websocket.Type, p []byte) (websocket.Type, []byte) {
		go func() {
			i := <-opened
			i.room("lobby").Leave(<-i.conns)
			close(left)
		}()
		for range 1000 { // until it waits for the room
			runtime.Gosched()
		}
		return t, p
	}})
	srv.Must("XADD", "chert:room:{0}lobby", "1-1", fieldText, "one")
	d.Shut(true)
	a.client("room=lobby&after=0-0&user=ann").wants("joined")
	opened <- a
	d.Shut(false)
	<-left
	if n := a.room("lobby").Len(); n != 0 {
		t.Errorf("%d connections are in the room", n)
	}
}

// A panic in Encode is logged and leaves out its message, also when it is read as the history.
func TestEncodePanics(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	var log servertest.Log
	o := Options{History: 10, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Encode: func(id string, t websocket.Type, p []byte) (websocket.Type, []byte) {
			return t, append([]byte(id+" "), p[1:]...)
		}}
	a, b := start(t, srv.URL(), o), start(t, srv.URL(), o)
	c := a.client("room=lobby&after=0-0")
	for _, text := range []string{"-one", "", "-two"} {
		a.say("lobby", text)
	}
	c.wants("one", "two")
	b.client("room=lobby&after=0-0").wants("one", "two")
	if n := strings.Count(log.String(), "a panic in Encode"); n != 2 {
		t.Errorf("%d panics are logged: %s", n, log.String())
	}
}

// What a client has missed may be more than may wait for it.
func TestLargeHistory(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	const n = 800
	srv.Must("EVAL", `for i = 1, tonumber(ARGV[1]) do
		redis.call('XADD', KEYS[1], '1-'..i, 't', i..string.rep(' ', 20000))
	end`, "1", "chert:room:{0}lobby", fmt.Sprint(n))
	a := start(t, srv.URL(), Options{History: n})
	c := a.client("room=lobby&after=0-0")
	loaded(a, 1)
	for i := range n {
		got := c.next()
		if got == "joined" {
			got = c.next()
		}
		if want := fmt.Sprintf("1-%d %d ", i+1, i+1); !strings.HasPrefix(got, want) {
			t.Fatalf("got %.20q, want %q", got, want)
		}
	}
	a.say("lobby", "more")
	c.wants("more")
}

// A connection that joins again does not get the history again.
func TestJoinTwice(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	a := start(t, srv.URL(), Options{History: 10})
	c := a.client("room=lobby&after=0-0")
	a.say("lobby", "one")
	c.wants("one")
	if err := a.room("lobby").Join(<-a.conns, &JoinOptions{After: "0-0"}); err != nil {
		t.Error(err)
	}
	a.say("lobby", "two")
	c.wants("two")
}

// Connections that end while they wait for Redis are not kept.
func TestEndedWhileWaiting(t *testing.T) {
	t.Parallel()
	a := start(t, "redis://127.0.0.1:1/0", Options{History: 10})
	for _, query := range []string{"", "&after=5-0"} {
		c := a.client("room=lobby&user=ann" + query)
		c.wants("joined")
		c.Close()
	}
	r := a.room("lobby")
	servertest.Eventually(t, "connections to be forgotten", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.waiting) == 0 && len(r.users) == 0
	})
	if n := r.Len(); n != 0 {
		t.Errorf("%d connections are in the room", n)
	}
}

// loaded waits until a process reads some rooms.
func loaded(i *instance, n int) {
	i.t.Helper()
	servertest.Eventually(i.t, "rooms to be read", func() bool { return i.Stats().Streams == n })
}

// With a history a client gets what it has missed, on any process.
func TestRoomHistory(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	d := door.Open(t, srv.Addr)
	o := Options{History: 10}
	a, b := start(t, "redis://"+d.Addr, o), start(t, "redis://"+d.Addr, o)
	c := a.client("room=lobby")
	c.wants("joined")
	loaded(a, 1)
	a.say("lobby", "one")
	c.wants("one")
	c.Close()
	a.say("lobby", "two")
	a.say("lobby", "three")
	c2 := b.client("room=lobby&after=" + c.last)
	c2.wants("two", "three")
	for round := range 5 { // from a process that is ahead
		d.Cut()
		text := fmt.Sprint("round ", round)
		a.say("lobby", text)
		c2.wants(text)
		c2.Close()
		a, b = b, a
		c2 = b.client("room=lobby&after=" + c2.last)
		a.say("lobby", "more")
		c2.wants("more")
	}
	for n := range 20 {
		a.say("lobby", fmt.Sprint(n))
	}
	for n := range 20 {
		c2.wants(fmt.Sprint(n)) // now b has read them
	}
	old := b.client("room=lobby&after=" + c.last)
	old.wants("gap")
	for n := 10; n < 20; n++ {
		old.wants(fmt.Sprint(n))
	}
	b.client("room=lobby&after=nonsense").wants("gap", "10")
}

// Redis loses its data: who was away is told as well, once.
func TestRoomLostHistory(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	a, b := start(t, srv.URL(), Options{History: 3}), start(t, srv.URL(), Options{History: 3})
	stays, away, ahead := a.client("room=lobby"), a.client("room=lobby"), b.client("room=lobby")
	a.say("lobby", "one")
	for _, c := range []*client{stays, away, ahead} {
		c.wants("one")
	}
	start := away.last
	a.say("lobby", "two")
	for _, c := range []*client{stays, away, ahead} {
		c.wants("two")
	}
	away.Close()
	srv.Kill()
	srv.Restart()
	a.say("lobby", "three")
	stays.wants("gap", "three")
	ahead.wants("gap", "three")
	a.client("room=lobby&after="+away.last).wants("gap", "three")
	a.client("room=lobby&after="+start).wants("two", "gap", "three")
	a.client("room=lobby&after=" + stays.last).wants("joined")
	a.say("lobby", "four")
	stays.wants("four")
	a.client("room=lobby&after="+start).wants("gap", "three", "four") // now two has gone
	a.say("lobby", "five")
	stays.wants("five")
	a.client("room=lobby&after="+away.last).wants("gap", "three", "four", "five")
}

// Redis loses its data: the room gets to know, and goes on.
func TestRoomLost(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	a := start(t, srv.URL(), Options{})
	c := a.client("room=lobby&user=ann")
	c.wants("joined")
	loaded(a, 1)
	a.say("lobby", "one")
	c.wants("one")
	srv.Kill()
	srv.Restart()
	a.say("lobby", "two")
	c.wants("gap", "two")
	// The users of the room are told again.
	servertest.Eventually(t, "ann to be found", func() bool {
		users, err := a.room("lobby").Users(t.Context())
		return err == nil && slices.Equal(users, []string{"ann"})
	})
}
