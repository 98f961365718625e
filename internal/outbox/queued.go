package outbox

import "sync"

// queued is what a Box needs only while something waits, or has failed: most of a million
// idle connections have none. Guarded by Box.mu.
type queued struct {
	segments []Segment
	size     int64     // bytes in segments
	held     int       // those of them in memory
	err      error     // of the carrier
	done     []notice  // to be told by unlock
	freed    []Holder  // to be released by unlock
	marks    []mark    // Followers, in order
	sent     int64     // of what was queued since writable; marks are relative to it
	lost     int64     // of what was queued, when the carrier failed, or else; of the Box's whole life
	deadline int64     // for the peer to accept everything, of sys.Nanotime; 0 for none
	giveUp   int64     // for the peer to accept something; see Await
	carrying chan bool // closed when Carry has nothing left; nil while it is not called
	owed     int32     // HasRoom reports true when held is less; 0: it need not
	before   int32     // see Await
	stalled  bool      // the Sink accepts nothing until its carrier pulls
	kept     bool      // the Sink has not sent all that it has accepted
	out      bool      // Carry has the first segment; what is there is a copy
	dropped  bool      // Carry drops everything when it returns
	telling  bool      // a goroutine is in tell

	first [1]Segment // room for segments
}

// nothing is what a Box refers to while nothing waits in it. It is never changed: writable comes first.
var nothing queued

var queues = sync.Pool{New: func() any {
	q := new(queued)
	q.segments = q.first[:0]
	return q
}}

// writable makes b.queued the Box's own, so that it may be changed, and returns it. mu is held.
func (b *Box) writable() *queued {
	if b.queued == &nothing {
		b.queued = queues.Get().(*queued)
	}
	return b.queued
}

// recycle gives back what writable has got, if nothing is queued. mu is held.
func (b *Box) recycle() {
	q := b.queued
	if q == &nothing || len(q.segments)+len(q.marks)+len(q.done)+len(q.freed) > 0 || q.telling ||
		q.err != nil || q.lost != 0 || q.deadline != 0 || q.carrying != nil || q.owed != 0 {
		return
	}
	*q = queued{done: emptied(q.done), freed: emptied(q.freed)}
	q.segments = q.first[:0]
	b.queued = &nothing
	queues.Put(q)
}

// emptied returns the room of an empty list, unless there once was much in it.
func emptied[E any](list []E) []E {
	if cap(list) > 8 {
		return nil
	}
	return list
}
