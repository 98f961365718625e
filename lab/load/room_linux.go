package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// Room is a set of WebSocket connections that get what is published.
type Room struct{ fds []int }

// OpenRoom opens n connections.
func OpenRoom(ctx context.Context, addr string, n int) (*Room, error) {
	idle, err := OpenSockets(ctx, addr, roomPath, n, nil)
	if err != nil {
		return nil, err
	}
	defer idle.Close() // does nothing for those that are closed
	fds, err := unpolled(idle.conns)
	if err != nil {
		closeAll(fds)
		return nil, err
	}
	return &Room{fds}, nil
}

// Receive publishes n messages, and then reads them on all connections: until then they wait in the kernel, and
// nothing waits for them.
func (r *Room) Receive(ctx context.Context, addr string, n, size int) error {
	if err := Publish(ctx, addr, n, size); err != nil {
		return err
	}
	want := bytes.Repeat(binaryFrame(bytes.Repeat([]byte("x"), size), nil), n)
	got := make([]byte, len(want)+1) // room for what nobody wants
	for i, fd := range r.fds {
		if err := receive(ctx, fd, got, want); err != nil {
			return fmt.Errorf("connection %d of %d: %w", i+1, len(r.fds), err)
		}
	}
	return nil
}

// receive reads what must come within some seconds.
func receive(ctx context.Context, fd int, got, want []byte) error {
	have, begin := 0, time.Now()
	for have < len(want) {
		n, err := transfer(syscall.SYS_READ, fd, got[have:])
		switch {
		case err == nil && n == 0:
			return io.ErrUnexpectedEOF
		case err == nil:
			have += n
			continue
		case err != syscall.EAGAIN && err != syscall.EINTR:
			return os.NewSyscallError("read", err)
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Since(begin) > late:
			return fmt.Errorf("nothing in %v", late)
		}
		if err := await(fd); err != nil {
			return err
		}
	}
	if !bytes.Equal(got[:have], want) {
		return errors.New("something else came than was published")
	}
	return nil
}

// await returns when there is something to read, or after a tick.
func await(fd int) error {
	p := struct {
		fd              int32
		events, revents int16
	}{fd: int32(fd), events: 1} // POLLIN
	timeout := syscall.NsecToTimespec(int64(tick))
	_, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&timeout)), 0, 0, 0)
	if errno != 0 && errno != syscall.EINTR {
		return os.NewSyscallError("ppoll", errno)
	}
	return nil
}

// Close closes the connections with a reset.
func (r *Room) Close() { closeAll(r.fds) }
