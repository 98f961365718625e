package main

import (
	"runtime"
	"syscall"
	"unsafe"

	"github.com/chert-http/chert/lab/uring"
)

// What a completion is of, in the upper half of its user data; the lower is the descriptor. A descriptor is closed only
// when nothing of it is under way, so its number is never reused while a completion may come.
const (
	opAccept = iota << 32
	opRecv   = iota << 32
	opSend   = iota << 32
	opOther  = iota << 32
	opTick   = iota << 32
)

type ringLoop struct {
	ring           *uring.Ring
	listener, tick int
	conns          map[int]*conn
	single         bool
	err            error // of a submission
}

const (
	ringEntries = 4096
	ringBuffers = 4096
	bufferSize  = 2048
)

func onRing(listener int) error {
	flags := uint32(uring.CoopTaskrun)
	if *io != "ring" {
		flags = uring.SingleIssuer | uring.DeferTaskrun
		runtime.LockOSThread() // the ring belongs to the thread that made it
	}
	ring, err := uring.New(ringEntries, flags, *held)
	if err != nil {
		return err
	}
	if err := ring.Buffers(ringBuffers, bufferSize); err != nil {
		return err
	}
	l := &ringLoop{ring: ring, listener: listener, tick: -1, conns: map[int]*conn{}, single: *io == "single"}
	l.submit(uring.Submission{Op: uring.OpAccept, Ioprio: uring.AcceptMultishot, FD: int32(listener), OpFlags: syscall.SOCK_CLOEXEC, UserData: opAccept})
	if *held {
		if l.tick, err = ticker(); err != nil {
			return err
		}
		l.watchTick()
	}
	for l.err == nil {
		// Submits everything of the last turn, and waits: usually the only system call of a turn.
		if err := ring.Enter(1); err != nil {
			return err
		}
		if err := ring.Completions(l.completion); err != nil {
			return err
		}
	}
	return l.err
}

func (l *ringLoop) submit(s uring.Submission) {
	if err := l.ring.Submit(s); err != nil {
		l.err = err
	}
}

func (l *ringLoop) watchTick() {
	const readable = 1
	l.submit(uring.Submission{Op: uring.OpPollAdd, FD: int32(l.tick), OpFlags: readable, Len: uring.PollMultishot, UserData: opTick})
}

func (l *ringLoop) completion(c uring.Completion) error {
	fd := int(uint32(c.UserData))
	switch c.UserData &^ (1<<32 - 1) {
	case opAccept:
		if c.Result < 0 && syscall.Errno(-c.Result) != syscall.ECONNABORTED {
			return syscall.Errno(-c.Result)
		}
		if c.Result >= 0 {
			l.conns[int(c.Result)] = &conn{fd: int(c.Result)}
			l.receive(int(c.Result))
		}
		if c.Flags&uring.More == 0 {
			l.submit(uring.Submission{Op: uring.OpAccept, Ioprio: uring.AcceptMultishot, FD: int32(l.listener), OpFlags: syscall.SOCK_CLOEXEC, UserData: opAccept})
		}
	case opRecv:
		l.received(l.conns[fd], c)
	case opSend:
		l.sent(l.conns[fd], int(c.Result))
	case opTick:
		ticked(l.tick)
		if c.Flags&uring.More == 0 {
			l.watchTick()
		}
	}
	return l.err
}

// receive asks for all that a connection ever sends, or for what it sends next.
func (l *ringLoop) receive(fd int) {
	s := uring.Submission{Op: uring.OpRecv, Flags: uring.BufferSelect, Ioprio: uring.RecvMultishot, FD: int32(fd), BufferGroup: l.ring.Group(), UserData: opRecv | uint64(fd)}
	if l.single {
		s.Ioprio, s.Len = 0, bufferSize
	}
	l.submit(s)
}

func (l *ringLoop) received(c *conn, done uring.Completion) {
	n := int(done.Result)
	if done.Flags&uring.HasBuffer != 0 {
		if n > 0 {
			c.take(l.ring.Received(done.Buffer(), n))
		}
		l.ring.Return(done.Buffer())
	}
	more := done.Flags&uring.More != 0
	switch {
	case n == 0 || n < 0 && syscall.Errno(-n) != syscall.ENOBUFS:
		c.ended = true
	case !more:
		l.receive(c.fd)
	}
	l.send(c)
	l.finish(c)
}

// send sends what there is, if no send is under way: two of them could overtake each other.
func (l *ringLoop) send(c *conn) {
	if c.sending || len(c.out) == 0 || c.ended {
		return
	}
	c.sending = true
	l.submit(uring.Submission{Op: uring.OpSend, FD: int32(c.fd), Addr: uint64(uintptr(unsafe.Pointer(&c.out[0]))), Len: uint32(len(c.out)),
		OpFlags: syscall.MSG_NOSIGNAL, UserData: opSend | uint64(c.fd)})
	// What arrives meanwhile must not be appended to memory that the kernel reads: it goes into a slice of its own.
	c.flying, c.out = c.out, c.spare[:0]
}

func (l *ringLoop) sent(c *conn, n int) {
	c.sending = false
	if n < 0 {
		c.out = c.out[:0]
		l.end(c)
	} else if n < len(c.flying) {
		c.out = append(append([]byte(nil), c.flying[n:]...), c.out...)
	}
	c.spare, c.flying = c.flying, nil
	l.send(c)
	if c.closing && !c.sending {
		l.end(c)
	}
	l.finish(c)
}

// end ends a connection. The receive that is under way holds the socket, so that closing it would send nothing: it is
// cancelled, and its completion says when the descriptor may be closed. OP_SHUTDOWN would be no way: the kernel leaves it
// to another thread, which resolves the descriptor later, when it may be that of another connection.
func (l *ringLoop) end(c *conn) {
	if !c.ended {
		l.submit(uring.Submission{Op: uring.OpCancel, FD: int32(c.fd), OpFlags: uring.CancelFD, UserData: opOther})
	}
}

// finish closes a connection that nothing is under way for any more.
func (l *ringLoop) finish(c *conn) {
	if c.ended && !c.sending {
		delete(l.conns, c.fd)
		l.submit(uring.Submission{Op: uring.OpClose, FD: int32(c.fd), UserData: opOther})
	}
}
