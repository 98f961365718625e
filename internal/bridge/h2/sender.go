package h2

import (
	"cmp"
	"slices"
	"sync"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/bridge/section"
	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/sys"
)

const (
	// maxOut is how many bytes of frames are gathered before they are passed to the
	// Link. While that does not accept them and there are more, nothing is read.
	maxOut = 32 << 10
	// maxData is the largest DATA frame, so that streams take turns.
	maxData = 16 << 10
	// leastUseful is how many bytes make a DATA frame useful, unless it is the last of
	// what there is to send: a client must not earn by windows of a few bytes each what
	// opening them costs it.
	leastUseful = 512
)

// sender is the side of a Session that handlers share with the owner: the frames that are ready,
// the windows, and the streams. mu guards all of it. Methods whose names end in Locked are called
// with mu held, and hold it until they return: frames are collected under mu, and written
// without it, by Session.pass.
type sender struct {
	mu      sync.Mutex
	streams []*stream // that are not closed, or have a Run, in the order of their requests
	fields  int       // of all streams, as SETTINGS_MAX_HEADER_LIST_SIZE counts
	spare   *stream   // for the next request, which saves most of them the pool

	out      *buf.Buf // frames that are ready; nil if there are none
	sending  bool     // a goroutine passes frames to the Link; others leave theirs in out
	full     bool     // the Link has no room
	lost     bool     // the Link has refused frames: none is sent after them but GOAWAY
	starved  bool     // frames, or the end, wait for the goroutine that is sending
	settling bool     // after was posted
	writable bool     // Writable was called since frames were collected: it may be before Offer has returned

	sendWindow http2.Window
	order      order
	sentAll    int64     // bytes of DATA and header blocks of all streams
	unsent     []*stream // that have more to send: their rest, or what goroutines wait to send
	tableDue   bool      // the next header block must begin with http2.NoTable

	inflow    http2.Inflow
	ahead     int // the sum of the streams' body.ahead
	growth    growth
	lingering int // streams; see linger

	resets  bridge.Budget
	useless bridge.Budget
	// ended are the streams that have ended last, reset those that the server has reset
	// last, of which frames may be on their way: as many as may be open.
	ended, reset []uint32

	followers []conn.Follower // of answers whose end is in out
	freed     []func()        // for the owner to call, without mu
	expiresBy int64           // when the next of the streams expires, or earlier; 0 for never; see expireStreams

	over    error // nothing is sent any more
	closing bool  // nor read: a GOAWAY with an error was sent
	gone    bool  // Closed was called: nothing must be kept
}

// collectLocked returns what is to be passed to the Link now, by one goroutine in one go: frames, or followers
// alone. It returns nothing if there is nothing, no room, or another goroutine that does it.
func (w *sender) collectLocked() (frames *buf.Buf, followers []conn.Follower) {
	if w.sending {
		return nil, nil
	}
	if len(w.out.Bytes()) > 0 {
		if w.full || w.over != nil && !w.closing {
			return nil, nil
		}
		frames, w.out, w.writable = w.out, nil, false
	}
	followers, w.followers = w.followers, nil
	w.sending = frames != nil || followers != nil
	return frames, followers
}

// writtenLocked ends what collectLocked began. followers are those that were not passed on.
func (w *sender) writtenLocked(frames *buf.Buf, followers []conn.Follower, full bool, err error) {
	w.sending = false
	w.followers = append(followers, w.followers...)
	switch {
	case frames == nil:
		return
	case err == conn.ErrFull && !w.gone:
		if w.out != nil {
			frames = frames.Grow(len(w.out.B))
			frames.B = append(frames.B, w.out.B...)
			w.out.Release()
		}
		w.out = frames
	case err == nil:
		frames.Release()
	default:
		if w.dropLocked(frames); w.gone {
			break
		}
		if w.lost = true; w.over == nil {
			w.over = err
		}
		for _, st := range w.streams { // nothing more will be sent
			st.wakeLocked()
		}
		return
	}
	w.full = full && !w.writable
}

// dropLocked frees frames that are not sent, and takes their DATA off what their streams have sent. It returns nil.
func (w *sender) dropLocked(b *buf.Buf) *buf.Buf {
	for p := b.Bytes(); len(p) >= http2.HeaderLen; {
		h := http2.ParseHeader(p)
		p = p[min(http2.HeaderLen+int(h.Length), len(p)):]
		st := w.streamLocked(h.Stream)
		if st == nil || h.Type != http2.FrameData {
			continue
		}
		st.sent -= int64(h.Length)
		if st.tunnel != nil || st.lasting != nil { // otherwise it is the handler's to count, by sent
			st.lostLocked(int(h.Length))
		}
	}
	return b.Drop()
}

// roomLocked makes room for n bytes in out.
func (w *sender) roomLocked(n int) {
	if w.out == nil {
		w.out = buf.Get(max(n, 2<<10))
	} else {
		w.out = w.out.Grow(n)
	}
}

// outFullLocked reports whether no more is gathered before something is passed to the Link.
func (w *sender) outFullLocked() bool { return len(w.out.Bytes()) >= maxOut }

// allQueuedLocked reports whether the Link has all frames.
func (w *sender) allQueuedLocked() bool { return !w.sending && len(w.out.Bytes()) == 0 }

// hasRoomLocked reports whether out has room, and no other stream is before st.
func (w *sender) hasRoomLocked(st *stream) bool {
	return !w.full && !w.outFullLocked() && !w.behindLocked(st)
}

// allowLocked is how many of n bytes st may send in a DATA frame now.
func (w *sender) allowLocked(st *stream, n int) int {
	if !w.hasRoomLocked(st) || st.closed() {
		return 0
	}
	return max(0, min(n, maxData, int(w.sendWindow), int(st.sendWindow)))
}

// putDataLocked appends a DATA frame of the first n bytes of a and then b, and returns what
// is left of them.
func (w *sender) putDataLocked(st *stream, a, b []byte, n int, end bool) (_, _ []byte) {
	flags := uint8(0)
	if end {
		flags = http2.FlagEndStream
	}
	w.roomLocked(http2.HeaderLen + n)
	w.out.B = http2.AppendHeader(w.out.B, http2.FrameData, flags, st.id, n)
	k := min(n, len(a))
	w.out.B = append(append(w.out.B, a[:k]...), b[:n-k]...)
	w.sendWindow -= http2.Window(n)
	st.sendWindow -= http2.Window(n)
	st.sent += int64(n)
	w.sentAll += int64(n)
	w.order.turn++
	st.turn = w.order.turn
	if a, b = a[k:], b[n-k:]; n >= leastUseful || len(a)+len(b) == 0 {
		w.useless.Refund(section.UsefulWorth)
	}
	return a, b
}

// sendLocked sends of a and then b what windows and room permit, and returns what is left. end: the answer ends
// with them.
func (w *sender) sendLocked(st *stream, a, b []byte, end bool) (_, _ []byte) {
	for len(a)+len(b) > 0 {
		n := w.allowLocked(st, len(a)+len(b))
		if n == 0 {
			break
		}
		a, b = w.putDataLocked(st, a, b, n, end && n == len(a)+len(b))
	}
	return a, b
}

func (w *sender) putBlockLocked(st *stream, block []byte, end bool) {
	if w.tableDue {
		w.tableDue = false
		block = append([]byte{http2.NoTable}, block...)
	}
	w.roomLocked(len(block) + (len(block)/maxData+1)*http2.HeaderLen)
	w.out.B = http2.AppendBlock(w.out.B, st.id, block, maxData, end)
	w.sentAll += int64(len(block))
}

func (w *sender) rstLocked(id uint32, code http2.ErrCode) {
	w.roomLocked(http2.HeaderLen + 4)
	w.out.B = http2.AppendRST(w.out.B, id, code)
}

// pingLocked appends a PING frame: one of ours, or the answer to the client's.
func (w *sender) pingLocked(ack bool, data []byte) {
	w.roomLocked(http2.HeaderLen + len(data))
	w.out.B = http2.AppendPing(w.out.B, ack, data)
}

// openWindowLocked appends a WINDOW_UPDATE frame, of a stream or, for 0, of the connection.
func (w *sender) openWindowLocked(id, n uint32) {
	w.roomLocked(http2.HeaderLen + 4)
	w.out.B = http2.AppendWindowUpdate(w.out.B, id, n)
}

// streamLocked returns the Session's stream with an id, nil if there is none.
func (w *sender) streamLocked(id uint32) *stream {
	i, ok := slices.BinarySearchFunc(w.streams, id, func(st *stream, id uint32) int { return cmp.Compare(st.id, id) })
	if !ok {
		return nil
	}
	return w.streams[i]
}

// pendLocked has the owner send the rest of st's answer. The time in which the client must
// accept some of it begins when settle sees it.
func (s *Session) pendLocked(st *stream, r *rest) {
	st.rest = r
	s.unsent = append(s.unsent, st)
	s.expireByLocked(st.writeBy)
}

// without takes st out of all, in place, if it is there.
func without(all []*stream, st *stream) []*stream {
	if i := slices.Index(all, st); i >= 0 {
		return slices.Delete(all, i, i+1)
	}
	return all
}

// recent adds id to those that were added last, in place of the oldest if there are most.
func recent(ids []uint32, id uint32, most int) []uint32 {
	if len(ids) == most {
		ids = slices.Delete(ids, 0, 1)
	}
	return append(slices.Grow(ids, most-len(ids)), id)
}

const manyEnded = 16

// rememberLocked notes that a stream is closed, byUs if the client may not know: what is on its way
// may be of as many streams as section.ResetBudget permits, and of as many as were open before.
func (s *Session) rememberLocked(id uint32, byUs bool) {
	if byUs {
		s.reset = recent(s.reset, id, min(max(s.cfg.MaxStreams, manyEnded), 1000)+section.ResetBudget)
	} else {
		s.ended = recent(s.ended, id, manyEnded)
	}
}

// wasClosedLocked reports whether a stream is closed, by a reset of the server's of which the client may
// not have heard, or known to be in another way. st is nil if it has left the Session.
func (w *sender) wasClosedLocked(id uint32, st *stream) (byUs, known bool) {
	if st != nil {
		return st.closed() && st.byUs(), st.closed()
	}
	byUs = slices.Contains(w.reset, id)
	return byUs, byUs || slices.Contains(w.ended, id)
}

// spendWorkLocked charges as much as n frames that do nothing. The error, if the budget does not cover
// that, is for the caller to fail with.
func (w *sender) spendWorkLocked(n int32) error {
	if !w.useless.Spend(n, sys.Nanotime) {
		return errUseless
	}
	return nil
}
