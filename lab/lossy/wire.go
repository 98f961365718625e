package lossy

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Device is an end of a network: each Read returns one packet that leaves it, each Write lets one arrive.
type Device io.ReadWriteCloser

// Wire carries packets between two devices, which it closes, until it is closed.
type Wire struct {
	ends [2]Device
	done chan struct{} // closed by Close
	all  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	err    error // the first that was not Close's doing
	counts Counts
}

// Counts is what has become of the packets of both directions.
type Counts struct {
	Passed, Lost, Full int64
	// Late is how much later than they should all packets together were delivered, and Latest the worst of them.
	Late, Latest time.Duration
}

// String says it for people.
func (c Counts) String() string {
	all := max(1, c.Passed+c.Lost+c.Full)
	return fmt.Sprintf("%d packets: %.2f %% lost, %.2f %% found the queue full; %v late on average, %v at worst",
		c.Passed+c.Lost+c.Full, 100*float64(c.Lost)/float64(all), 100*float64(c.Full)/float64(all),
		(c.Late / time.Duration(max(1, c.Passed))).Round(time.Microsecond), c.Latest.Round(time.Microsecond))
}

// Join makes a wire, whose first direction is from a to b.
func Join(p Path, a, b Device) *Wire {
	w := &Wire{ends: [2]Device{a, b}, done: make(chan struct{})}
	for from := range w.ends {
		q := &transit{wake: make(chan struct{}, 1)}
		w.all.Go(func() { w.receive(newLine(p, uint64(from)), w.ends[from], q) })
		w.all.Go(func() { w.deliver(q, w.ends[1-from]) })
	}
	return w
}

// Counts returns what has become of the packets until now. A packet is counted when it has been read, as lost or
// passed; those that are still on their way are among the latter.
func (w *Wire) Counts() Counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts
}

// Close ends the wire and closes its devices. Packets on their way are lost. It returns why the wire ended before, if
// it did.
func (w *Wire) Close() error {
	w.mu.Lock()
	first := !w.closed
	w.closed = true
	w.mu.Unlock()
	if first {
		close(w.done)
		w.ends[0].Close()
		w.ends[1].Close()
	}
	w.all.Wait()
	return w.err
}

// failed keeps an error of a device.
func (w *Wire) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.err = errors.Join(w.err, err)
	}
}

// transit is the packets on their way in one direction. It has no bound: the path's queue and rate are one.
type transit struct {
	mu      sync.Mutex
	packets []packet
	wake    chan struct{} // has a token if there may be packets
}

type packet struct {
	arrives time.Time
	bytes   []byte
}

// receive reads packets, decides what becomes of each, and lets those go on their way that arrive.
func (w *Wire) receive(l *line, from io.Reader, to *transit) {
	const largest = 1 << 16 // of IP's
	buf := make([]byte, largest)
	for {
		n, err := from.Read(buf)
		if err != nil {
			w.failed(err)
			return
		}
		arrives, f := l.admit(time.Now(), n)
		w.count(f)
		if f != passed {
			continue
		}
		to.mu.Lock()
		to.packets = append(to.packets, packet{arrives, append([]byte(nil), buf[:n]...)})
		to.mu.Unlock()
		select {
		case to.wake <- struct{}{}:
		default:
		}
	}
}

func (w *Wire) count(f fate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*[fates]*int64{passed: &w.counts.Passed, lost: &w.counts.Lost, full: &w.counts.Full}[f]++
}

// next removes the first packet.
func (t *transit) next() (p packet, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.packets) == 0 {
		return packet{}, false
	}
	p, t.packets = t.packets[0], t.packets[1:]
	return p, true
}

// deliver writes each packet when it arrives. They arrive in the order in which they were sent.
func (w *Wire) deliver(from *transit, to io.Writer) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		p, ok := from.next()
		if !ok {
			select {
			case <-from.wake:
			case <-w.done:
				return
			}
			continue
		}
		timer.Reset(time.Until(p.arrives))
		select {
		case <-timer.C:
		case <-w.done:
			return
		}
		w.late(time.Since(p.arrives))
		if _, err := to.Write(p.bytes); err != nil {
			w.failed(err)
			return
		}
	}
}

func (w *Wire) late(by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Late += by
	w.counts.Latest = max(w.counts.Latest, by)
}
