package redisroom

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/door"
	"github.com/chert-http/chert/internal/testing/redistest"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/websocket"
)

// A message to a user that Redis has arrives, also if the one before has gone meanwhile.
func TestInboxLost(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	d := door.Open(t, srv.Addr)
	a := start(t, "redis://"+d.Addr, Options{})
	c := a.client("user=ann")
	c.wants("joined")
	loaded(a, 1)
	key := "chert:room:{0}" + inboxOf(a.streams.Instance())
	srv.Must("XADD", key, "*", fieldText, "one", fieldUser, "ann")
	c.wants("one")
	d.Shut(true)
	srv.Must("XTRIM", key, "MAXLEN", "0")
	srv.Must("XADD", key, "*", fieldText, "two", fieldUser, "ann") // as Send of another process does
	d.Shut(false)
	c.wants("two")
}

// Who is in a room is known on all processes, and a message reaches a user anywhere.
func TestPresence(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	a, b := start(t, srv.URL(), Options{}), start(t, srv.URL(), Options{})
	users := func(want ...string) {
		t.Helper()
		for _, i := range []*instance{a, b} {
			servertest.Eventually(t, strings.Join(want, ", "), func() bool {
				got, err := i.room("lobby").Users(t.Context())
				return err == nil && slices.Equal(got, want)
			})
		}
	}
	users()
	ann, ann2 := a.client("room=lobby&user=ann"), b.client("room=lobby&user=ann")
	bob := b.client("room=lobby&user=bob%20%7Bx%7D")
	users("ann", "bob {x}")
	ann.Close()
	bob.Close()
	users("ann")
	ann2.Close()
	users()

	one, two, other := a.client("user=ann"), b.client("user=ann"), b.client("user=bob")
	for _, c := range []*client{one, two, other} {
		c.wants("joined")
	}
	send := func(i *instance, user, text string, want int) {
		t.Helper()
		servertest.Eventually(t, fmt.Sprint(user, " on ", want), func() bool {
			at, err := i.presence.list(t.Context(), atUser+user)
			return err == nil && len(at) == want
		})
		if n, err := i.Send(t.Context(), user, websocket.TypeText, []byte(text)); n != want || err != nil {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
	send(a, "ann", "for ann", 2)
	send(b, "bob", "for bob", 1)
	send(a, "nobody", "for nobody", 0)
	one.wants("for ann")
	two.wants("for ann")
	other.wants("for bob")
	one.Close()
	send(b, "ann", "again", 1)
	two.wants("again")
}

// A process that was taken for dead is back in the sets, which others have kept.
func TestSilentProcess(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	a, b := start(t, srv.URL(), Options{}), start(t, srv.URL(), Options{})
	a.presence.every = 20 * time.Millisecond
	a.client("room=lobby&user=ann").wants("joined")
	b.client("room=lobby&user=bob").wants("joined")
	users := func(why string) {
		t.Helper()
		servertest.Eventually(t, why, func() bool {
			got, err := b.room("lobby").Users(t.Context())
			return err == nil && slices.Equal(got, []string{"ann", "bob"})
		})
	}
	users("both to be there")
	srv.Must("HDEL", a.presence.key(atRoom+"lobby"), a.presence.field("ann")) // as b does with a dead process
	srv.Must("DEL", a.presence.alive(a.streams.Instance()))                   // as time does
	users("a to be back")
}

// What a process has itself it knows before Redis does.
func TestOwnUsers(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	a := start(t, srv.URL(), Options{})
	c := a.client("user=ann")
	for _, client := range []*client{c, a.client("room=lobby&user=ann")} {
		client.wants("joined")
	}
	for _, set := range []string{atRoom + "lobby", atUser + "ann"} {
		servertest.Eventually(t, "Redis to know "+set, func() bool { return srv.Must("HKEYS", a.presence.key(set)) != "" })
		srv.Must("DEL", a.presence.key(set))
	}
	srv.Must("HSET", a.presence.key(atRoom+"lobby"), a.presence.field("left"), "")
	if got, err := a.room("lobby").Users(t.Context()); err != nil || !slices.Equal(got, []string{"ann"}) {
		t.Errorf("%q, %v", got, err)
	}
	if n, err := a.Send(t.Context(), "ann", websocket.TypeText, []byte("to you")); n != 1 || err != nil {
		t.Errorf("Send: %d, %v", n, err)
	}
	c.wants("to you")
}

// A process that dies is forgotten.
func TestDeadProcess(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	a := start(t, srv.URL(), Options{})
	key := a.presence.key(atRoom + "lobby")
	srv.Must("HSET", key, "dead ann", "")
	a.client("room=lobby&user=bob").wants("joined")
	servertest.Eventually(t, "only bob", func() bool {
		got, err := a.room("lobby").Users(t.Context())
		return err == nil && slices.Equal(got, []string{"bob"})
	})
	if fields := srv.Must("HKEYS", key); strings.Contains(fields, "dead") {
		t.Errorf("%q", fields)
	}
	a.Close()
	if fields := srv.Must("HKEYS", key); fields != "" {
		t.Errorf("after Close: %q", fields)
	}
	if _, err := a.Room("x"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// What Redis does not know of those that join and leave while it is away is not kept, but that others have left is.
func TestPresenceAway(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	d := door.Open(t, srv.Addr)
	a := start(t, "redis://"+d.Addr, Options{})
	known := a.client("room=lobby&user=known")
	known.wants("joined")
	set := a.presence.key(atRoom + "lobby")
	servertest.Eventually(t, "Redis to know one", func() bool { return srv.Must("HLEN", set) == "1" })
	d.Shut(true)
	known.Close()
	dirty := func(want int) {
		t.Helper()
		servertest.Eventually(t, fmt.Sprint(want, " to be kept"), func() bool {
			a.presence.mu.Lock()
			defer a.presence.mu.Unlock()
			return len(a.presence.dirty) == want
		})
	}
	servertest.Eventually(t, "Redis to be away", func() bool {
		a.presence.mu.Lock()
		defer a.presence.mu.Unlock()
		return a.presence.failed
	})
	var all []*client
	for n := range 10 {
		all = append(all, a.client(fmt.Sprint("room=lobby&user=", n)))
		all[n].wants("joined")
	}
	dirty(11)
	for _, c := range all[1:] {
		c.Close()
	}
	dirty(2)
	d.Shut(false)
	servertest.Eventually(t, "Redis to know the one that stays", func() bool {
		return srv.Must("HKEYS", set) == a.presence.field("0")
	})
	dirty(0)
}
