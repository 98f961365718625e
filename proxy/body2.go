package proxy

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/origin"
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

// content2 returns the body of res. That of a 204 or 304 has ended with the head (RFC 9110 sections 15.3.5 and 15.4.5),
// although the server may not have ended the stream: then Close resets that.
func content2(res *http.Response) io.ReadCloser {
	if res.StatusCode != http.StatusNoContent && res.StatusCode != http.StatusNotModified {
		return res.Body
	}
	return struct {
		io.Reader
		io.Closer
	}{http.NoBody, res.Body}
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
		// What the Transport returns together with an error is the end of a body of which the server sends more than
		// it has declared. RFC 9113 section 8.1.1: such a response must not be passed on as if it were whole.
		return 0, b.failure(err)
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

// trailing is the body of a request of HTTP/2, which has those trailers at its end that are in to, with a limit for
// stalls.
type trailing struct {
	*origin.Cursor
	from, to http.Header

	stall time.Duration
	timer *time.Timer  // nil without a limit
	ended atomic.Int64 // when the latest read ended; 0 before the first, in each, and at the end of the body

	awaited atomic.Bool // the client was waited for when it was closed
}

// limit has late called when the server takes no more of what has come for d, unless that is not positive.
func (b *trailing) limit(d time.Duration, late func()) {
	if b.stall = d; d > 0 {
		b.timer = time.AfterFunc(d, func() {
			ended := b.ended.Load()
			if ended == 0 {
				return
			}
			if left := b.stall - time.Duration(now()-ended); left > 0 {
				b.timer.Reset(left)
				return
			}
			late()
		})
	}
}

func (b *trailing) Read(p []byte) (int, error) {
	b.ended.Store(0)
	n, err := b.Cursor.Read(p)
	switch {
	case err == io.EOF:
		for name := range b.to {
			b.to[name] = b.from[name]
		}
		if b.timer != nil { // the last of it may not have been taken
			b.ended.Store(now())
			b.timer.Reset(b.stall)
		}
	case err == nil && b.timer != nil:
		b.ended.Store(now())
		b.timer.Reset(b.stall)
	}
	return n, err
}

// written is called when the Transport has sent the whole body, after which it counts ResponseTimeout.
func (b *trailing) written() { b.ended.Store(0) }

// Close implements io.Closer. The Transport calls it too, when the server ends the stream.
func (b *trailing) Close() error {
	if b.Unawaited() == 0 {
		b.awaited.Store(true)
	}
	err := b.Cursor.Close()
	if b.ended.Store(0); b.timer != nil {
		b.timer.Stop()
	}
	return err
}
