package static

import (
	"errors"
	"time"
)

// interval is how long an entry, and the folder, are assumed to be unchanged:
// including the time of a request, changes are noticed within a second. A
// listing that took long is valid longer, see Handler.list.
const interval = int64(900 * time.Millisecond)

// cached returns the entry of k, if there is a valid one, which the caller must
// release. It does not keep k.name.
func (h *Handler) cached(k key, now int64) *entry {
	e := h.cache.get(k)
	if e == nil {
		return nil
	}
	if !h.holds(e, now) {
		e.release()
		return nil
	}
	return e
}

// holds reports whether e is of the file as it is now, or was within the
// interval. After that, one of the concurrent callers checks, and the others
// use e meanwhile.
func (h *Handler) holds(e *entry, now int64) bool {
	last := e.checked.Load()
	// A check from before the folder was replaced proves nothing.
	if now-last < max(interval, e.life) && last > h.swapped.Load() || !e.checked.CompareAndSwap(last, now) {
		return !e.stale.Load()
	}
	if e.stale.Load() {
		return false
	}
	if h.unchanged(e) {
		return true
	}
	e.stale.Store(true)
	h.cache.drop(e)
	return false
}

// unchanged compares e with the file.
func (h *Handler) unchanged(e *entry) bool {
	if e.young || e.ahead && !h.ahead(e) {
		return false
	}
	st, err := h.src.peek(e.name)
	if err != nil {
		return isFull(err) // which is not about the file
	}
	if !st.same(&e.stat) {
		return false
	}
	if e.siblings.Load() != 0 {
		h.findSiblings(e)
	}
	return true
}

// look checks whether the folder is still the same, at most once an interval.
func (h *Handler) look(now int64) {
	last := h.looked.Load()
	if now-last < interval || !h.looked.CompareAndSwap(last, now) {
		return
	}
	if h.src.moved() {
		h.swapped.Store(now)
	}
}

// sweepInterval is how often descriptors are checked for unlinked files, if
// there are requests at all.
const sweepInterval = int64(10 * time.Second)

// sweep belongs to the ordinary path: with many descriptors it takes a while.
func (h *Handler) sweep(now int64) {
	last := h.swept.Load()
	if now-last >= sweepInterval && h.swept.CompareAndSwap(last, now) {
		h.cache.sweep()
	}
}

func (h *Handler) sweepDue(now int64) bool { return now-h.swept.Load() >= sweepInterval }

var errWritten = errors.New("static: the file was written to while it was sent")

// unwritten is the check of files that are being sent.
func (e *entry) unwritten() error { return unwritten(e.file, e.fd, &e.stat) }
