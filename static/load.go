package static

import (
	"io"
	"math"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
)

// This file makes entries of files. All of it may wait for the disk. The fast
// path calls it only for single files of the system (Handler.loadDirect).

// loadTries is how often a file is read again if it changes meanwhile.
const loadTries = 3

// youth is how long after a write another write could leave the same times: ten
// ticks of a coarse clock.
const youth = 100 * time.Millisecond

// A file that was written to within the last settling may be being written in
// place: up to settlingMax, in bytes, it is read whole, as a small one is, so
// that a response is of one version.
const (
	settling    = 2 * time.Second
	settlingMax = 1 << 20
)

// get returns the entry of k, from the cache or new, which the caller must
// release. k.name is kept.
func (h *Handler) get(k key, now int64) (*entry, error) {
	return h.obtain(k, now, "", func() (*entry, error) { return h.load(k) })
}

// obtain returns the entry of k, if it is of base, from the cache or by load,
// which runs once for all concurrent callers.
func (h *Handler) obtain(k key, now int64, base string, load func() (*entry, error)) (*entry, error) {
	for {
		if e := h.cachedOf(k, now, base); e != nil {
			return e, nil
		}
		var mine *entry
		v, err, _ := h.flight.Do(string(rune('A'+k.kind))+base+k.name, func() (any, error) {
			// Another caller's load may have ended since.
			e := h.cachedOf(k, now, base)
			if e == nil {
				var err error
				if e, err = load(); err != nil {
					return nil, err
				}
				h.keep(e)
			}
			mine = e
			return e, nil
		})
		if err != nil {
			return nil, err
		}
		if mine != nil {
			return mine, nil // with a use that is this caller's
		}
		// The goroutine that made it may already have released it, and the
		// cache may have rejected it.
		if e := v.(*entry); e.acquire() {
			return e, nil
		}
	}
}

// cachedOf is cached for an entry of base.
func (h *Handler) cachedOf(k key, now int64, base string) *entry {
	e := h.cached(k, now)
	if e != nil && e.base != base {
		e.release()
		return nil
	}
	return e
}

// keep puts e into the cache, unless that has been closed, also meanwhile.
func (h *Handler) keep(e *entry) {
	if h.closed.Load() {
		return
	}
	h.cache.put(e)
	if h.closed.Load() {
		h.cache.drop(e)
	}
}

// load makes the entry of a file. It has one use, the caller's.
func (h *Handler) load(k key) (*entry, error) {
	return h.loadAs(about{key: k, name: k.name})
}

// loadAs is load for an entry about which more is known.
func (h *Handler) loadAs(a about) (*entry, error) {
	for try := 1; ; try++ {
		e := &entry{about: a}
		err := h.read(e)
		if err == nil {
			return e, nil
		}
		if !changing(err) || try == loadTries {
			return nil, err
		}
	}
}

// read examines e's file and fills in the rest of e.
func (h *Handler) read(e *entry) error {
	// Both before the file is examined: later changes must be noticed.
	now, wall := h.now(), h.wall()
	f, st, err := h.open(e.name)
	if err != nil {
		return err
	}
	e.stat, e.young = st, isYoung(&st, wall)
	e.checked.Store(now)
	kept := false
	switch {
	case st.size <= h.CacheFileSize:
		err = h.readSmall(e, f)
	case st.size <= settlingMax && writtenWithin(&st, wall, settling):
		e.young = true // until it has settled
		err = h.readSmall(e, f)
	default:
		kept, err = h.readLarge(e, f)
	}
	if !kept {
		f.Close()
	}
	return err
}

// open opens a file. If there are no descriptors left, the cached ones that are
// not in use are closed first.
func (h *Handler) open(name string) (file, stat, error) {
	f, st, err := h.src.open(name)
	if err != nil && isFull(err) {
		h.cache.shed()
		f, st, err = h.src.open(name)
	}
	return f, st, err
}

// isYoung reports whether the file was written to just before the time of
// loading, so that its times may be the same after another write (git calls this
// racily clean). On Linux ctime is the kernel's own and cannot be set back.
func isYoung(st *stat, wall time.Time) bool { return writtenWithin(st, wall, youth) }

// writtenWithin reports whether the file was written to less than d from wall.
func writtenWithin(st *stat, wall time.Time, d time.Duration) bool {
	last := max(st.mtime, st.ctime)
	if last == noTime {
		return false
	}
	age := wall.Sub(time.Unix(0, last))
	return -d < age && age < d
}

var readBuffers = sync.Pool{New: func() any { return new([]byte) }}

// readSmall reads the whole content, between two stats of the file that agree.
func (h *Handler) readSmall(e *entry, f file) error {
	p := readBuffers.Get().(*[]byte)
	defer readBuffers.Put(p)
	// At least a byte: some files report to be empty but are not, as in /proc.
	size := max(int(e.stat.size), 1)
	if cap(*p) < size {
		*p = make([]byte, size)
	}
	b := (*p)[:size]
	n, err := readFull(f, b)
	if err != nil {
		return err
	}
	if st, err := f.stat(); err != nil {
		return err
	} else if int64(n) != e.stat.size || !st.same(&e.stat) {
		return errChanging
	}
	e.setBody(b[:n]) // furnish makes a copy
	h.setMedia(e, b[:n])
	h.furnish(e)
	return nil
}

// readFull reads until b is full or the file ends.
func readFull(f io.Reader, b []byte) (int, error) {
	n := 0
	for n < len(b) {
		m, err := f.Read(b[n:])
		n += m
		if err == io.EOF {
			break
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// readLarge makes an entry whose content stays in the file. It reports whether f
// is kept.
func (h *Handler) readLarge(e *entry, f file) (kept bool, err error) {
	beginning, err := h.beginning(e, f)
	if err != nil {
		return false, err
	}
	if e.stat.mtime != noTime {
		e.tag = statTag(&e.stat, e.key.coding(), e.young)
	} else if e.tag, err = hashAll(f, beginning); err != nil {
		return false, err
	}
	e.seekable = canSeek(f)
	if h.src.keeps() && h.OpenFiles > 0 {
		e.file = f.disk()
		e.fd = int(e.file.Fd())
		e.refs.Store(1)
		e.check, e.done = e.unwritten, e.release
		kept = true
	}
	h.setMedia(e, beginning)
	h.furnish(e)
	return kept, nil
}

// beginning reads what the media type is detected from, and no more.
func (h *Handler) beginning(e *entry, f file) ([]byte, error) {
	b := make([]byte, min(512, e.stat.size))
	n, err := readFull(f, b)
	return b[:n], err
}

// hashAll makes the tag of a file without times, by reading it.
func hashAll(f io.Reader, beginning []byte) (string, error) {
	d := xxhash.New()
	d.Write(beginning)
	n, err := io.Copy(d, f)
	return contentTag(d.Sum64(), n+int64(len(beginning))), err
}

// readWhole reads the file of an entry, if it is still the same.
func (h *Handler) readWhole(e *entry) ([]byte, error) {
	if e.ok != nil {
		return e.body, nil
	}
	f, st, err := h.open(e.name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !st.content(&e.stat) || st.size > math.MaxInt32 {
		return nil, errChanging
	}
	b := make([]byte, st.size+1)
	n, err := readFull(f, b)
	if err != nil {
		return nil, err
	}
	after, err := f.stat()
	if err != nil {
		return nil, err
	}
	if int64(n) != st.size || !after.content(&st) {
		return nil, errChanging
	}
	return b[:n], nil
}
