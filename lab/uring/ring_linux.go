package uring

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// The system calls have the same numbers on all of Linux's architectures.
const (
	sysSetup    = 425
	sysEnter    = 426
	sysRegister = 427
)

// Flags of New: see io_uring_setup(2).
const (
	CoopTaskrun  = 1 << 8  // completions do not interrupt the program
	SingleIssuer = 1 << 12 // only one thread submits
	DeferTaskrun = 1 << 13 // completions are made only while that thread waits; needs SingleIssuer
	cqSize       = 1 << 3
)

// Operations and their flags: see io_uring_enter(2).
const (
	OpPollAdd = 6
	OpAccept  = 13
	OpClose   = 19
	OpSend    = 26
	OpRecv    = 27
	OpCancel  = 14

	AcceptMultishot = 1 << 0 // in Ioprio
	RecvMultishot   = 1 << 1 // in Ioprio
	PollMultishot   = 1 << 0 // in Len
	BufferSelect    = 1 << 5 // in Flags
	CancelFD        = 1 << 1 // in OpFlags: what is under way on a descriptor

	HasBuffer = 1 << 0 // in a completion's Flags
	More      = 1 << 1
	buffer    = 16 // the shift of the buffer's number there

	registerBuffers = 22
	getEvents       = 1
	single          = 1 << 0 // a feature: both rings in one mapping
)

// Submission is an entry of the submission queue.
type Submission struct {
	Op, Flags   uint8
	Ioprio      uint16
	FD          int32
	Offset      uint64
	Addr        uint64
	Len         uint32
	OpFlags     uint32
	UserData    uint64
	BufferGroup uint16
	_           uint16
	_           int32
	_           [2]uint64
}

// Completion is an entry of the completion queue.
type Completion struct {
	UserData uint64
	Result   int32 // negative: an errno
	Flags    uint32
}

// Buffer is the number of the buffer that was received into.
func (c Completion) Buffer() uint16 { return uint16(c.Flags >> buffer) }

type params struct {
	sqEntries, cqEntries, flags, threadCPU, threadIdle, features, wqFD uint32
	_                                                                  [3]uint32
	sq, cq                                                             offsets
}

// offsets are those of a queue in the mapping. The last but two are called otherwise in the other queue.
type offsets struct {
	head, tail, mask, entries, a, b, c, _ uint32
	_                                     uint64
}

// Ring is an io_uring. One goroutine at a time may use it, and with SingleIssuer one thread.
type Ring struct {
	fd                     int
	memory, submissions    []byte
	sqHead, sqTail, cqHead *uint32
	cqTail                 *uint32
	sqMask, cqMask         uint32
	array                  []uint32
	entries                []Submission
	completions            []Completion
	tail, submitted        uint32
	held                   bool

	buffers    []byte // what is received into
	bufferRing []byte
	bufferTail uint16
	bufferSize int
}

// Available is nil if the kernel has io_uring and lets this process use it.
func Available() error {
	r, err := New(8, 0, false)
	if err != nil {
		return err
	}
	return r.Close()
}

// New makes a ring. With held the thread keeps its processor while it waits, as the Go runtime sees it: nothing else runs
// on it meanwhile.
func New(entries int, flags uint32, held bool) (*Ring, error) {
	p := params{flags: flags | cqSize, cqEntries: uint32(4 * entries)}
	fd, _, errno := syscall.Syscall(sysSetup, uintptr(entries), uintptr(unsafe.Pointer(&p)), 0)
	runtime.KeepAlive(&p)
	if errno != 0 {
		return nil, fmt.Errorf("io_uring_setup: %w", errno)
	}
	r := &Ring{fd: int(fd), held: held}
	if err := r.mmap(&p); err != nil {
		syscall.Close(r.fd)
		return nil, err
	}
	return r, nil
}

func (r *Ring) mmap(p *params) error {
	if p.features&single == 0 {
		return fmt.Errorf("io_uring: this kernel is older than 5.4")
	}
	const (
		rings       = 0
		submissions = 0x10000000
	)
	size := max(int(p.sq.c)+4*int(p.sqEntries), int(p.cq.b)+16*int(p.cqEntries))
	var err error
	if r.memory, err = syscall.Mmap(r.fd, rings, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_POPULATE); err != nil {
		return err
	}
	if r.submissions, err = syscall.Mmap(r.fd, submissions, 64*int(p.sqEntries), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_POPULATE); err != nil {
		return err
	}
	at := func(offset uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.memory[offset])) }
	r.sqHead, r.sqTail, r.sqMask = at(p.sq.head), at(p.sq.tail), *at(p.sq.mask)
	r.cqHead, r.cqTail, r.cqMask = at(p.cq.head), at(p.cq.tail), *at(p.cq.mask)
	r.array = unsafe.Slice(at(p.sq.c), p.sqEntries)
	r.completions = unsafe.Slice((*Completion)(unsafe.Pointer(&r.memory[p.cq.b])), p.cqEntries)
	r.entries = unsafe.Slice((*Submission)(unsafe.Pointer(&r.submissions[0])), p.sqEntries)
	for i := range r.array {
		r.array[i] = uint32(i)
	}
	return nil
}

// Submit puts an entry into the queue. If that is full, what is in it is handed to the kernel first.
func (r *Ring) Submit(s Submission) error {
	if r.tail-atomic.LoadUint32(r.sqHead) == uint32(len(r.entries)) {
		if err := r.Enter(0); err != nil {
			return err
		}
	}
	r.entries[r.tail&r.sqMask] = s
	r.tail++
	return nil
}

// Enter hands what was submitted to the kernel, and waits until there are so many completions.
func (r *Ring) Enter(completions int) error {
	atomic.StoreUint32(r.sqTail, r.tail)
	n := r.tail - r.submitted
	call := syscall.Syscall6
	if r.held {
		call = syscall.RawSyscall6
	}
	done, _, errno := call(sysEnter, uintptr(r.fd), uintptr(n), uintptr(completions), getEvents, 0, 0)
	switch errno {
	case 0:
		r.submitted += uint32(done)
		return nil
	case syscall.EINTR:
		r.submitted = atomic.LoadUint32(r.sqHead) // what it had taken already
		return nil
	}
	return fmt.Errorf("io_uring_enter: %w", errno)
}

// Completions calls f for each completion that is there.
func (r *Ring) Completions(f func(Completion) error) error {
	head := *r.cqHead
	for tail := atomic.LoadUint32(r.cqTail); head != tail; tail = atomic.LoadUint32(r.cqTail) {
		c := r.completions[head&r.cqMask]
		head++
		atomic.StoreUint32(r.cqHead, head)
		if err := f(c); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the ring.
func (r *Ring) Close() error {
	for _, m := range [][]byte{r.memory, r.submissions, r.buffers, r.bufferRing} {
		if m != nil {
			if err := syscall.Munmap(m); err != nil {
				return err
			}
		}
	}
	return syscall.Close(r.fd)
}
