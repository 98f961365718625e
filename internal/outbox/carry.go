package outbox

import "net"

// This file is for carriers that wait.

// Carry makes one call of the Sink, without the lock, and reports whether to call it again.
// The Sink may wait; others may queue meanwhile.
func (b *Box) Carry() (again bool) {
	b.mu.Lock()
	defer b.unlockCarrier()
	if len(b.segments) == 0 {
		b.carried()
		return false
	}
	s, more := b.segments[0], len(b.segments) > 1
	held, size := s.Bytes(), s.Size()
	b.out = true
	b.mu.Unlock()
	err := net.ErrClosed
	defer func() {
		b.mu.Lock() // for unlock
		b.out = false
		b.segments[0] = s
		if b.account(&s, held, size, err); err != nil && !Later(err) {
			b.err = err
		} else if err == nil && s.Size() == 0 {
			b.free(s.Free())
			if b.segments = b.segments[1:]; len(b.segments) == 0 {
				b.unblock()
			}
		}
		if b.dropped || b.err != nil {
			b.dropped = false
			b.clear()
		}
		if !again { // Check has ended its goroutine
			b.carried()
		}
	}()
	if s.waited && s.n > 0 && s.Bytes() == 0 {
		if err = s.holder.Check(); err != nil {
			return true
		}
	}
	s.waited = true
	err = s.step(b.sink, more)
	return true
}

// unlockCarrier is unlock for the goroutine that calls Carry. If a Follower ends it, another goes on.
func (b *Box) unlockCarrier() {
	returned := false
	defer func() {
		if returned {
			return
		}
		b.mu.Lock()
		left := b.carrying != nil
		b.mu.Unlock()
		if left {
			b.sink.Wake()
		}
	}()
	b.unlock()
	returned = true
}

// carried says that Carry is not called any more. mu is held.
func (b *Box) carried() {
	if b.carrying != nil {
		close(b.carrying)
		b.carrying = nil
	}
}

// Carried waits until nothing is queued, or can be sent any more.
func (b *Box) Carried() error {
	b.mu.Lock()
	done := b.carrying
	b.unlock()
	if done != nil {
		<-done
	}
	return b.Err()
}

// SendCarried queues w for Carry, however much waits.
func (b *Box) SendCarried(w *Write) error {
	s := Of(w)
	b.mu.Lock()
	defer b.unlock()
	err := b.err
	if b.closed && err == nil {
		err = net.ErrClosed
	}
	if err != nil {
		b.writable().lost += s.Size()
		b.free(s.Free())
		return err
	}
	if s.Size() == 0 {
		b.free(s.Free())
		return nil
	}
	b.add(&s, true)
	b.wake()
	return nil
}

// Through sends w through a Sink that waits, while nothing else uses that.
func (b *Box) Through(w *Write) (err error) {
	s := Of(w)
	defer func() { // also when Check ends its goroutine
		b.Lose(s.Size())
		Release(s.Free())
	}()
	for {
		if err = s.Push(b.sink, false, false); err != ErrYield {
			return err
		}
		if err = s.holder.Check(); err != nil {
			return err
		}
	}
}
