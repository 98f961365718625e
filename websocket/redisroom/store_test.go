package redisroom

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/chert-http/chert/internal/testing/door"
	"github.com/chert-http/chert/internal/testing/redistest"
	"github.com/chert-http/chert/websocket"
)

// Messages to users that Redis has dropped are lost, but those that it has arrive, also if none was read before.
func TestInboxOverflows(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	d := door.Open(t, srv.Addr)
	a := start(t, "redis://"+d.Addr, Options{})
	c := a.client("user=ann")
	c.wants("joined")
	loaded(a, 1)
	d.Shut(true)
	srv.Must("EVAL", `for n = 1, 1500 do
		redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[1], '*', ARGV[2], string.format('%d', n), ARGV[3], 'ann')
	end`, "1", "chert:room:{0}"+inboxOf(a.streams.Instance()), fmt.Sprint(least), fieldText, fieldUser)
	d.Shut(false)
	c.wants("501", "502")
}

// After Close no method asks Redis.
func TestClosed(t *testing.T) {
	t.Parallel()
	a := start(t, redistest.Start(t).URL(), Options{})
	r := a.room("lobby")
	a.Close()
	_, users := r.Users(t.Context())
	_, send := a.Send(t.Context(), "ann", websocket.TypeText, nil)
	_, broadcast := r.Broadcast(websocket.TypeText, nil)
	_, room := a.Room("x")
	for i, err := range []error{users, send, broadcast, room} {
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if n := slices.Index([]bool{a.Connect(nil, "ann") == nil, r.Join(nil, nil) == nil}, true); n >= 0 {
		t.Errorf("%d has no error", n)
	}
}
