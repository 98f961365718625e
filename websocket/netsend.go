package websocket

import (
	"math"
	"net"
	"time"

	"github.com/chert-http/chert/internal/takeover"
)

// This file is what a netLink sends.

const (
	// writeStall is how long a client may take to accept writePiece bytes of what is
	// written.
	writeStall = 30 * time.Second
	writePiece = 64 << 10
)

func (l *netLink) Offer(a, b []byte, limit int) (much bool, err error) {
	n := len(a) + len(b)
	if limit < 0 {
		limit = math.MaxInt
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.writeErr != nil:
		return false, l.writeErr
	case l.over:
		return false, net.ErrClosed
	case l.size > limit/2 && l.size > limit-n:
		l.much = true
		return true, takeover.ErrFull
	}
	l.pending = append(l.pending, append(append(make([]byte, 0, n), a...), b...))
	if l.size += n; l.writing == nil {
		l.writing = make(chan struct{})
		go l.write(l.writing)
	}
	much = l.size > limit/2
	l.much = l.much || much
	return much, nil
}

func (l *netLink) Follow(f func()) {
	l.mu.Lock()
	wait := l.size > 0
	if wait {
		l.follow = append(l.follow, f)
	}
	l.mu.Unlock()
	if !wait {
		f()
	}
}

// write writes what is pending until there is nothing left. All that is pending leaves
// together.
func (l *netLink) write(done chan struct{}) {
	defer close(done)
	l.point(1)
	for {
		l.mu.Lock()
		if len(l.pending) == 0 {
			l.size, l.writing = 0, nil
			follow := l.follow
			l.follow = nil
			l.mu.Unlock()
			for _, f := range follow {
				f()
			}
			return
		}
		all := l.pending
		l.pending = nil
		l.mu.Unlock()
		n, err := l.send(all)
		l.mu.Lock()
		if l.size -= n; err != nil {
			l.writeErr, l.pending, l.size = err, nil, 0
			l.below().Close() // the reader ends the connection
			l.rouse()
		}
		tell := l.much && l.size <= lowWater
		l.much = l.much && !tell
		l.mu.Unlock()
		if tell {
			l.Post(func() takeover.Next { l.s.Writable(); return takeover.More })
		}
	}
}

// send writes all, of n bytes. The client has writeStall for each piece of it.
func (l *netLink) send(all [][]byte) (n int, err error) {
	for len(all) > 0 && err == nil {
		var piece net.Buffers
		for room := writePiece; room > 0 && len(all) > 0; {
			p := all[0][:min(len(all[0]), room)]
			piece = append(piece, p)
			n, room = n+len(p), room-len(p)
			if all[0] = all[0][len(p):]; len(all[0]) == 0 {
				all = all[1:]
			}
		}
		l.nc.SetWriteDeadline(time.Now().Add(writeStall))
		_, err = piece.WriteTo(l.nc)
	}
	return n, err
}
