package websocket

import "testing"

// TestRoomJoinDuringLeave: a connection that joins while it is made to leave, more than once,
// leaves the room when it ends.
func TestRoomJoinDuringLeave(t *testing.T) {
	t.Parallel()
	s, _ := stuck(t, nil)
	left := 0
	var room Room
	room.OnLeave = func(c *Conn) {
		if left++; left == 1 {
			room.Leave(c)
			if !room.Join(c) {
				t.Error("Join of an open connection")
			}
		}
	}
	room.Join(s.conn())
	room.Leave(s.conn())
	if n := room.Len(); n != 1 || left != 1 {
		t.Errorf("%d members, OnLeave was called %d times", n, left)
	}
	if !room.Has(s.conn()) {
		t.Error("Has does not know a member")
	}
	s.Closed(false)
	if n := room.Len(); n != 0 || left != 2 || room.Has(s.conn()) {
		t.Errorf("after the end: %d members, OnLeave was called %d times", n, left)
	}
}
