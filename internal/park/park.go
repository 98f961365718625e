package park

import (
	"errors"
	"syscall"

	"github.com/chert-http/chert/internal/sys"
)

// ErrParked is returned for a socket that is already parked.
var ErrParked = errors.New("the connection is already parked")

// onGoroutine is Park where nothing else can wait for the socket. Where the system cannot
// be asked whether it is readable, ready is called at once.
func onGoroutine(raw syscall.RawConn, now bool, ready func()) error {
	if err := raw.Control(func(uintptr) {}); err != nil {
		return err
	}
	go func() {
		if !now {
			// It also ends with an error, which the next Read returns too. Not by
			// MSG_PEEK, which takes the error of a reset from the socket.
			raw.Read(func(fd uintptr) bool { return sys.Pending(int(fd)) })
		}
		ready()
	}()
	return nil
}
