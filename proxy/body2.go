package proxy

import (
	"context"
	"io"
	"sync/atomic"
	"time"
)

// body2 is the body of a response of HTTP/2, with a limit for stalls.
type body2 struct {
	io.ReadCloser
	request *trailing // the body that the response may be made of; nil if there is none
	failure func(error) error
	cancel  context.CancelCauseFunc
	end     func()

	stall time.Duration
	timer *time.Timer  // nil without a limit
	began atomic.Int64 // when the read began that is under way; 0 if none is
}

// limit limits the time of each Read, unless d is negative.
func (b *body2) limit(d time.Duration) {
	if b.stall = d; d > 0 {
		b.timer = time.AfterFunc(d, b.stalled)
	}
}

// stalled is called when a Read may have waited for too long.
func (b *body2) stalled() {
	began := b.began.Load()
	if began == 0 {
		return
	}
	waited := time.Duration(now() - began)
	if b.request != nil { // the client has limits of its own
		waited = min(waited, b.request.Unawaited())
	}
	if waited < b.stall {
		b.timer.Reset(b.stall - waited)
		return
	}
	b.cancel(errStalled)
}

func (b *body2) Read(p []byte) (int, error) {
	if b.timer != nil {
		b.began.Store(now())
		b.timer.Reset(b.stall)
		defer b.began.Store(0)
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = b.failure(err)
	}
	return n, err
}

func (b *body2) Close() error {
	if b.timer != nil {
		b.timer.Stop()
	}
	err := b.ReadCloser.Close()
	b.end()
	return err
}
