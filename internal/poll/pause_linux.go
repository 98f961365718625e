package poll

import (
	"os"
	"runtime"
	"syscall"

	"github.com/chert-http/chert/internal/sys"
)

// A pause lets all other goroutines run, also those whose sockets have become
// ready. runtime.Gosched does not do that: the scheduler polls the network only
// when it finds no goroutine to run, and there is always the one that yields.
// Its monitor polls every 10 ms, which is long for a handler that waits for a
// database.
//
// So the goroutine that yields itself waits for the poller, on a descriptor
// that it has made ready.
type pause struct {
	fd     int
	file   *os.File
	raw    syscall.RawConn
	waited bool
	try    func(uintptr) bool
}

func newPause() (*pause, error) {
	fd, err := sys.Eventfd()
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "pause")
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, err
	}
	p := &pause{fd: fd, file: f, raw: raw}
	p.try = func(uintptr) bool {
		if p.waited {
			return true
		}
		p.waited = true
		// An edge, after Read has reset the runtime's own state.
		sys.EventfdSignal(p.fd)
		return false
	}
	return p, nil
}

// yield returns when other goroutines have had their turn.
func (p *pause) yield() {
	p.waited = false
	if p.raw.Read(p.try) != nil {
		runtime.Gosched()
	}
}

func (p *pause) close() { p.file.Close() }
