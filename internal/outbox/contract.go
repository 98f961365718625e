package outbox

import (
	"errors"
	"os"
)

const (
	// HighWater is how much may wait of what a caller sends that can wait, in bytes. At
	// LowWater there is room again.
	HighWater = 64 << 10
	LowWater  = HighWater / 2
	// QueueLimit is the limit of Offer for a caller that waits when Offer reports much: more
	// than HighWater waits then.
	QueueLimit = 2 * HighWater
	// SmallWrite is the most that is copied to join bytes that already wait.
	SmallWrite = 16 << 10
	// FileTurn bounds how much of a file is sent at a time, while others wait or its holder
	// is not asked, in bytes: nginx's sendfile_max_chunk.
	FileTurn = 2 << 20
	// copyTurn is the same where the file is read, and may be sealed.
	copyTurn = 256 << 10
	// CopySize is how much of a file is read at a time then.
	CopySize = 28 << 10
)

// ErrFull is returned when nothing was accepted because too much waits.
var ErrFull = errors.New("outbox: too much waits for the peer")

// Refused reports whether n bytes more are refused while held bytes wait: if more than
// half of limit waits, and it would be more than limit with these. So what is larger than
// the limit can be sent, alone. A negative limit is none.
func Refused(held, n, limit int) bool { return Much(held, limit) && held > limit-n }

// Much reports whether held is more than half of limit.
func Much(held, limit int) bool { return limit >= 0 && held > limit/2 }

// A Sink is the carrier of a Box.
type Sink interface {
	// Push sends some of p and then q, which may both be empty, and returns how much. more
	// means that other bytes follow immediately. Without an error it is called again for the
	// rest. ErrWouldBlock says that the carrier will Pull, ErrKept the same; another error
	// that nothing can be sent any more.
	Push(p, q []byte, more bool) (n int, err error)
	// Wake is called when something waits that the carrier does not know of. It must not
	// wait, nor use the Box.
	Wake()
}

// A FileSink is a Sink that can send files which it does not read.
type FileSink interface {
	// PushFile is Push of up to n bytes of a file. ErrCopy says that the file is to be read
	// and pushed, ErrYield that its holder is to be asked before more is sent.
	PushFile(f *os.File, offset, n int64) (sent int64, err error)
}

// What a Sink returns that is no failure.
var (
	ErrWouldBlock = errors.New("outbox: would block")
	// ErrKept is ErrWouldBlock of a Sink that has not yet sent all that it has accepted.
	ErrKept  = errors.New("outbox: would block, with accepted bytes")
	ErrYield = errors.New("outbox: others wait")
	ErrCopy  = errors.New("outbox: the file cannot be sent by the system")
)

// Later reports whether err says that the rest is sent later.
func Later(err error) bool { return err == ErrWouldBlock || err == ErrKept || err == ErrYield }

// Write is data to be sent: A, then B, then Len bytes of File.
type Write struct {
	A, B        []byte
	File        *os.File // a regular file; nil with Len 0
	Offset, Len int64
	// Holder owns A, B and File, and may own this Write, until it is released. Without one, bytes that
	// have to wait are copied, and there must be no File.
	Holder Holder
	// Cork: another response is likely to follow immediately. On a loop these
	// bytes may wait for it, until Data returns or the loop is lost.
	Cork bool
	// Deadline is when to give up on a peer that does not accept the bytes, of
	// sys.Nanotime; 0 means none. Limits.WriteStall also applies.
	Deadline int64
	// Wait is for a caller that can wait for the peer. It has no File and no Holder then.
	Wait Wait
	// DiscardInput: what the peer still sends is of no use, and the connection ends after
	// this. It is read and discarded meanwhile, since the peer may read only when it has
	// sent everything.
	DiscardInput bool
}

// Wait is how long a Write waits for the peer, if it does not for the connection's end.
type Wait uint8

const (
	NoWait  Wait = iota
	ForRoom      // until no more than HighWater is queued
	ForAll       // until nothing is
)

// A Holder owns data that is being sent.
type Holder interface {
	// Check is called before sending continues that had to wait for the peer.
	// An error ends the connection.
	Check() error
	// Release is called once, when all has been sent or the connection has
	// failed, by any goroutine and without a lock of the Box.
	Release()
}

// A Follower is notified when data has been sent or lost.
type Follower interface {
	// Sent is called once. lost is how many of the bytes up to then, counted from
	// the connection's beginning, have not been sent and will not be. Any
	// goroutine may call it, without a lock of the Box; it must neither wait nor
	// use the Box.
	Sent(lost int64)
}

// FollowerFunc is a function as a Follower that does not need to know what was lost.
type FollowerFunc func()

// Sent implements Follower.
func (f FollowerFunc) Sent(int64) { f() }

// Release releases h, which may be nil.
func Release(h Holder) {
	if h != nil {
		h.Release()
	}
}
