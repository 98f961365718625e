package uring

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// bufferGroup is the number of the only group.
const bufferGroup = 1

// bufferEntry is an entry of a ring of buffers. The first one's reserved part is the ring's tail.
type bufferEntry struct {
	addr   uint64
	len    uint32
	number uint16
	tail   uint16
}

type registration struct {
	addr    uint64
	entries uint32
	group   uint16
	_       uint16
	_       [3]uint64
}

// Buffers gives the kernel n buffers of a size, from which it takes one when something was received. n is a power of two.
func (r *Ring) Buffers(n, size int) error {
	anonymous := func(size int) ([]byte, error) {
		return syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	}
	var err error
	if r.buffers, err = anonymous(n * size); err != nil {
		return err
	}
	if r.bufferRing, err = anonymous(16 * n); err != nil {
		return err
	}
	r.bufferSize = size
	reg := registration{addr: uint64(uintptr(unsafe.Pointer(&r.bufferRing[0]))), entries: uint32(n), group: bufferGroup}
	_, _, errno := syscall.Syscall6(sysRegister, uintptr(r.fd), registerBuffers, uintptr(unsafe.Pointer(&reg)), 1, 0, 0)
	runtime.KeepAlive(&reg)
	if errno != 0 {
		return fmt.Errorf("io_uring_register: %w", errno)
	}
	for i := range n {
		r.Return(uint16(i))
	}
	return nil
}

// Group is the group of the buffers, for a Submission.
func (r *Ring) Group() uint16 { return bufferGroup }

// Received is the contents of a buffer, until it is returned.
func (r *Ring) Received(number uint16, n int) []byte {
	return r.buffers[int(number)*r.bufferSize:][:n]
}

// Return gives a buffer back to the kernel.
func (r *Ring) Return(number uint16) {
	entries := unsafe.Slice((*bufferEntry)(unsafe.Pointer(&r.bufferRing[0])), len(r.bufferRing)/16)
	e := &entries[int(r.bufferTail)&(len(entries)-1)]
	e.addr = uint64(uintptr(unsafe.Pointer(&r.buffers[int(number)*r.bufferSize])))
	e.len, e.number = uint32(r.bufferSize), number
	r.bufferTail++
	// The tail has 16 bits, and there is no atomic store of that size: it is stored with the number beside it, of the
	// first entry, which only this goroutine writes.
	first := (*uint32)(unsafe.Pointer(&entries[0].number))
	atomic.StoreUint32(first, uint32(entries[0].number)|uint32(r.bufferTail)<<16)
}
