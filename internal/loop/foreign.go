package loop

import (
	"sync/atomic"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/sys"
)

// AcceptFrom accepts on a listening socket that somebody else opened and may
// close, and deals its connections out to loops in turn. It returns when raw
// does: with the error that says that the listener is closed. The socket is
// not duplicated, or closing it would not stop it from listening.
func AcceptFrom(raw syscall.RawConn, loops []*Loop, a *Accept) error {
	f := foreign{Accept: a, loops: loops, reserve: -1, free: make(chan struct{}, 1)}
	f.reserve, _ = sys.ReservePlace()
	defer func() {
		if f.reserve >= 0 {
			sys.Close(f.reserve)
		}
	}()
	for {
		if err := raw.Read(f.accept); err != nil {
			return err
		}
		if f.full {
			f.rest(raw)
		}
	}
}

type foreign struct {
	*Accept
	loops   []*Loop
	next    int
	reserve int
	full    bool // no place or no descriptor; rest before going on
	// awaiting: the gate will send on free.
	awaiting atomic.Bool
	logged   int64
	free     chan struct{}
}

// accept is what raw.Read calls: false means wait until readable.
func (f *foreign) accept(lfd uintptr) bool {
	f.full = false
	for range acceptBatch {
		if !f.Gate.Enter() {
			f.full = true
			f.await()
			return true
		}
		fd, peer, e := sys.Accept(int(lfd))
		if e == 0 {
			f.deal(fd, peer)
			continue
		}
		f.Gate.Leave("")
		switch {
		case sys.TemporaryAccept(e):
		case sys.Again(e):
			return false
		default:
			f.complain(sys.Nanotime(), &f.logged, e)
			f.full = true
			return true
		}
	}
	return true
}

func (f *foreign) deal(fd int, peer string) {
	l := f.loops[f.next%len(f.loops)]
	f.next++
	if !l.Do(func() { f.admit(l, fd, peer) }) {
		sys.Close(fd)
		f.Gate.Leave("")
	}
}

func (f *foreign) rest(raw syscall.RawConn) {
	t := time.NewTimer(time.Duration(pauseFor))
	defer t.Stop()
	select {
	case <-f.free:
	case <-t.C:
		raw.Control(f.refuseSome)
	}
}

func (f *foreign) await() {
	if f.awaiting.Swap(true) {
		return
	}
	f.Gate.Await(func() {
		f.awaiting.Store(false)
		select {
		case f.free <- struct{}{}:
		default:
		}
	})
}

func (f *foreign) refuseSome(lfd uintptr) {
	scratch := make([]byte, 4096)
	for range refuseBatch {
		if f.reserve >= 0 {
			sys.Close(f.reserve)
		}
		fd, _, e := sys.Accept(int(lfd))
		if e == 0 {
			refuse(fd, f.Refusal, scratch)
		}
		f.reserve, _ = sys.ReservePlace()
		if e != 0 && !sys.TemporaryAccept(e) {
			return
		}
	}
}
