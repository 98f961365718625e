package lossy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// device is one whose packets are those of a test.
type device struct {
	sends   chan string
	arrived chan arrival
	once    sync.Once
	closed  chan struct{}
	broken  error // of each Write
}

type arrival struct {
	packet string
	at     time.Duration // since the test began
}

func newDevice() *device {
	return &device{sends: make(chan string, 1000), arrived: make(chan arrival, 1000), closed: make(chan struct{})}
}

func (d *device) Read(b []byte) (int, error) {
	select {
	case p := <-d.sends:
		return copy(b, p), nil
	case <-d.closed:
		return 0, os.ErrClosed
	}
}

func (d *device) Write(b []byte) (int, error) {
	if d.broken != nil {
		return 0, d.broken
	}
	d.arrived <- arrival{string(b), time.Since(begun)}
	return len(b), nil
}

func (d *device) Close() error {
	d.once.Do(func() { close(d.closed) })
	return nil
}

// begun is when every bubble of synctest begins.
var begun = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// What is sent arrives at the other end, whole, in order and at its time, in both directions.
func TestWire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		a, b := newDevice(), newDevice()
		w := Join(Path{Delay: 25 * ms, Rate: 8e6, Queue: 2}, a, b)
		large := string(make([]byte, 1000))
		a.sends <- large
		a.sends <- large
		a.sends <- "too many"
		synctest.Wait()
		b.sends <- "0123456789"
		time.Sleep(25 * ms)
		a.sends <- "later"
		time.Sleep(time.Second)
		for name, tt := range map[string]struct {
			at   *device
			want []arrival
		}{
			"there": {b, []arrival{{large, 26 * ms}, {large, 27 * ms}, {"later", 50*ms + 5000}}},
			"back":  {a, []arrival{{"0123456789", 25*ms + 10000}}},
		} {
			var got []arrival
			for len(tt.at.arrived) > 0 {
				got = append(got, <-tt.at.arrived)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s: %v", name, got)
			}
		}
		if got, want := w.Counts(), (Counts{Passed: 4, Full: 1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Of those that are sent, only those arrive that are not counted as lost.
func TestWireLoses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		a, b := newDevice(), newDevice()
		w := Join(Path{Loss: 0.1, Rate: 8e6, Queue: n, Seed: 1}, a, b)
		for i := range n {
			a.sends <- fmt.Sprint(i)
		}
		time.Sleep(time.Minute)
		got := w.Counts()
		if got.Lost == 0 || got.Full != 0 || got.Passed+got.Lost != n || len(b.arrived) != int(got.Passed) {
			t.Errorf("%d arrived, %+v", len(b.arrived), got)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A wire may be closed while packets are on their way; a device that fails is reported.
func TestWireEnds(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]error{"closed": nil, "broken": io.ErrShortWrite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a, b := newDevice(), newDevice()
				b.broken = broken
				w := Join(Path{Delay: time.Second, Rate: 8e6, Queue: 10}, a, b)
				a.sends <- "x"
				synctest.Wait()
				if broken != nil {
					time.Sleep(2 * time.Second)
				}
				for range 2 {
					if err := w.Close(); !errors.Is(err, broken) {
						t.Errorf("Close = %v", err)
					}
				}
				if len(b.arrived) != 0 {
					t.Error("a packet arrives")
				}
			})
		})
	}
}
