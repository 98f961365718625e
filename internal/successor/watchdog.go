package successor

import (
	"time"

	"github.com/chert-http/chert/internal/systemd"
)

// Watchdog tells the service manager that this process lives, more often than it wants to know and as
// long as alive reports true, until stop is called. alive is called on a goroutine of its own.
func (p *Process) Watchdog(alive func() bool) (stop func()) {
	every := systemd.Watchdog() / 8 // a process on a busy machine may miss some
	if every <= 0 {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
			}
			if alive() {
				p.Notify(systemd.Alive)
			}
		}
	}()
	return func() { close(done) }
}
