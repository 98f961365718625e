package h3

import (
	"net/http"
	"testing"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// released is how many of the streams have been released.
func released(all []*countedStream) (n int) {
	for _, str := range all {
		n += int(str.released.Load())
	}
	return n
}

// Places are given back many at a time, the earlier ones of those that are held.
func TestPlacesAreHeld(t *testing.T) {
	t.Parallel()
	c := served(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(hello) }))
	var all []*countedStream
	for i := range maxHeld {
		str := &countedStream{memoryStream: c.get(uint64(4 * i))}
		all = append(all, str)
		c.streams <- str
		servertest.Await(t, str.done, "answer")
		servertest.Eventually(t, "its end, which is in the order of those of all", func() bool {
			c.session.mu.Lock()
			defer c.session.mu.Unlock()
			return len(c.session.streams) == 0
		})
	}
	servertest.Eventually(t, "half are released", func() bool { return released(all) >= maxHeld/2 })
	for i, str := range all[:maxHeld/2] {
		if n := str.released.Load(); n != 1 {
			t.Errorf("stream %d was released %d times", 4*i, n)
		}
	}
	servertest.Eventually(t, "none is held when no more come", func() bool { return released(all) == maxHeld })
}

// However many places are held, a client can have as many requests at a time as it was promised.
func TestPlacesSuffice(t *testing.T) {
	t.Parallel()
	const most = 12
	free, began := make(chan struct{}), make(chan struct{}, most)
	c := servedWith(t, most, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			began <- struct{}{}
			<-free
		}
		w.Write(hello)
	}))
	var all []*countedStream
	send := func(path string) *countedStream {
		// As a transport does, which has the places of streams that were not released.
		servertest.Eventually(t, "there is a place", func() bool { return len(all)-released(all) < most })
		str := &countedStream{memoryStream: c.ask(uint64(4*len(all)), path)}
		all = append(all, str)
		c.streams <- str
		return str
	}
	for range most/2 + 3 {
		servertest.Await(t, send("/").done, "answer")
	}
	var waiting []*countedStream
	for range most {
		waiting = append(waiting, send("/wait"))
		servertest.Await(t, began, "the handler")
	}
	close(free)
	for _, str := range waiting {
		servertest.Await(t, str.done, "answer")
	}
}

// While a client uses half of its places, none is held.
func TestPlacesOfBusyClient(t *testing.T) {
	t.Parallel()
	const most = 12
	cfg := &Config{MaxStreams: most}
	s := &Session{cfg: cfg, streams: map[uint64]*stream{}}
	s.mu.Lock() // it has a timer by now, as all that hold places
	defer s.mu.Unlock()
	for id := uint64(0); id < 100; id += 4 {
		str := &countedStream{}
		st := &stream{s: s, str: str, id: id, eof: true}
		st.ended.Store(true)
		// One more request that does not end, after every fifth that does.
		s.streams[id] = st
		release(s.crowdedLocked())
		if id%20 != 0 && len(s.streams) < most {
			delete(s.streams, id)
			release(s.leaveLocked(st))
		}
		if n := len(s.places.held); n > 0 && n+len(s.streams) > most/2 {
			t.Fatalf("%d places are held and %d used of %d", n, len(s.streams), most)
		}
	}
	if len(s.streams) <= most/2-2 {
		t.Fatal("the client has never used many places")
	}
}

// What the transport may have much of is not held: streams that have not been read to their end.
func TestPlacesOfUnread(t *testing.T) {
	t.Parallel()
	s := &Session{cfg: &Config{MaxStreams: 100}}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, eof := range []bool{false, true} {
		for _, ended := range []bool{false, true} {
			str := &countedStream{}
			st := &stream{s: s, str: str, eof: eof}
			st.ended.Store(ended)
			release(s.leaveLocked(st))
			if held := str.released.Load() == 0; held != (eof && ended) {
				t.Errorf("read to its end: %t, answered: %t: held: %t", eof, ended, held)
			}
		}
	}
}
