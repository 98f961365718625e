package outbox

import "testing"

// However many Followers there are, to notify one moves none of the others.
func TestFollowersStay(t *testing.T) {
	t.Parallel()
	s := &full{wakes: make(chan bool, 1)}
	var b Box
	b.Init(s)
	var last *notice
	told, moved := 0, 0
	for range 100 {
		b.Offer([]byte("a"), nil, -1)
		b.Follow(FollowerFunc(func() {
			told++
			n := len(b.done)
			if n == 0 {
				return
			}
			at := &b.done[n-1]
			if last != nil && at != last {
				moved++
			}
			last = at
		}))
	}
	s.open = true
	b.Pull(true)
	if told != 100 || moved > 0 {
		t.Errorf("%d Followers were notified, and others were moved %d times", told, moved)
	}
}
