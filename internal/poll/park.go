//go:build linux || darwin

package poll

import (
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/sys"
)

// A parker lets a goroutine wait for a poller's own descriptor on the Go
// runtime's poller: an epoll or kqueue descriptor is itself readable when one
// of those it watches is ready. The goroutine is parked like any that waits for
// a socket, so its processor is free immediately. A blocking epoll_wait would
// keep the processor until the runtime's monitor takes it away, 20 µs to 10 ms
// later (docs/adr/0003).
type parker struct {
	file *os.File
	raw  syscall.RawConn
	// armed is when the file's read deadline will fire, 0 when none is set.
	armed int64
}

func newParker(fd int, name string) (parker, error) {
	f := os.NewFile(uintptr(fd), name)
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return parker{}, err
	}
	// Fails if the runtime cannot watch the descriptor; waiting would then
	// spin.
	if err := f.SetReadDeadline(time.Time{}); err != nil {
		f.Close()
		return parker{}, err
	}
	return parker{file: f, raw: raw}, nil
}

// wait calls try until it returns true, parking between the calls, or until
// the clock passes until. try is what syscall.RawConn takes: another function
// around it would be an allocation in every wait.
func (p *parker) wait(until int64, try func(uintptr) bool) error {
	// A deadline that fires too early costs one spurious wake-up; one that is
	// moved at every wait costs a timer operation each time. So it only moves
	// to come earlier.
	if until != Never && (p.armed == 0 || until < p.armed) {
		d := time.Duration(until - sys.Nanotime())
		if err := p.file.SetReadDeadline(time.Now().Add(max(d, 1))); err != nil {
			return err
		}
		p.armed = until
	}
	err := p.raw.Read(try)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.armed = 0
		return p.file.SetReadDeadline(time.Time{})
	}
	return err
}
