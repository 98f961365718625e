package redisroom

import (
	"slices"
	"testing"

	"github.com/chert-http/chert/internal/testing/redistest"
	"github.com/chert-http/chert/websocket"
)

// A connection that joins while it leaves is either in the room, and its user too, or neither is.
func TestJoinWhileLeaving(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{true, false} { // it leaves what it is in last
		a := start(t, redistest.Start(t).URL(), Options{})
		r := a.room("lobby")
		set := &r.local
		if before {
			set = &r.waited
		}
		var again *websocket.Conn
		set.OnLeave = func(c *websocket.Conn) {
			if again != nil {
				again = nil
				if err := r.Join(c, &JoinOptions{User: "ann"}); err != nil {
					t.Error(err)
				}
			}
			r.gone(c)
		}
		c := a.client("room=lobby&user=ann")
		c.wants("joined")
		loaded(a, 1)
		a.say("lobby", "one")
		c.wants("one")
		again = <-a.conns
		conn := again
		r.Leave(conn)
		users, err := r.Users(t.Context())
		if in := r.local.Has(conn); in != slices.Contains(users, "ann") || err != nil {
			t.Errorf("%v: in the room: %v, users %v, %v", before, in, users, err)
		}
	}
}

// No room has the name of another stream.
func TestRoomOfOtherStream(t *testing.T) {
	t.Parallel()
	a := start(t, redistest.Start(t).URL(), Options{})
	if _, err := a.Room(inboxOf(a.streams.Instance())); err == nil {
		t.Error("a room has the messages to the users of a process")
	}
}
