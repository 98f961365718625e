package natstopic

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// reader reads the topics that have clients, on a goroutine of its own.
type reader struct {
	s       *Store
	live    chan *nats.Msg
	running sync.WaitGroup
	signal  chan struct{}

	mu      sync.Mutex
	added   []*topic // to be read
	ahead   []*topic // that want Mark and Current
	check   bool     // whether events have been missed is not known
	cut     bool     // the connection is not there
	away    bool     // the store has been told that NATS cannot be read
	reading int

	// The goroutine's.
	stream  jetstream.Stream
	active  map[string]*topic // by token
	dirty   map[*topic]bool   // that have missed events, or whose history is not read yet
	loading []*topic          // of added, that are not loaded yet
	current time.Time         // of what was stored until then nothing has been missed
	skew    time.Duration     // by which the server's clock is ahead of the process's, at least
}

const (
	// lookEvery is how often topics without clients are looked for, and whether the stream is there.
	lookEvery = 15 * time.Second
	// room is for how many messages that have come; nats.go drops what is more.
	room = 1 << 16
	// How long is waited after reading has failed.
	firstWait = 50 * time.Millisecond
	maxWait   = time.Second
)

func newReader(s *Store) *reader {
	return &reader{s: s, live: make(chan *nats.Msg, s.o.room), signal: make(chan struct{}, 1), active: make(map[string]*topic),
		dirty: make(map[*topic]bool)}
}

func (r *reader) start() { r.running.Go(r.run) }

func (r *reader) wake() {
	select {
	case r.signal <- struct{}{}:
	default:
	}
}

func (r *reader) want(t *topic) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.again = true; !t.wanted {
		t.wanted = true
		r.added = append(r.added, t)
		r.wake()
	}
}

func (r *reader) isAhead(t *topic) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !t.ahead {
		t.ahead = true
		r.ahead = append(r.ahead, t)
		r.wake()
	}
}

// missed is called when events may have been missed.
func (r *reader) missed() {
	r.mu.Lock()
	r.check = true
	r.mu.Unlock()
	r.wake()
}

// reconnected is called when the connection is there, also for the first time.
func (r *reader) reconnected() {
	r.mu.Lock()
	r.cut = false
	r.mu.Unlock()
	r.missed()
}

func (r *reader) disconnected(err error) {
	if err == nil {
		err = errors.New("the connection has ended")
	}
	r.mu.Lock()
	r.cut = true
	r.mu.Unlock()
	r.s.cuts.Add(1)
	r.setAway(err)
}

// setAway is called with why NATS cannot be read, and with nil when it has been.
func (r *reader) setAway(why error) {
	r.mu.Lock()
	was := r.away
	r.away = why != nil || was && r.cut
	now := r.away
	r.mu.Unlock()
	switch {
	case now && !was:
		r.s.setAway(1, why)
	case was && !now:
		r.s.setAway(-1, nil)
	}
}

// run reads until the store is closed.
func (r *reader) run() {
	tick := time.NewTicker(r.interval())
	defer tick.Stop()
	idle := time.NewTicker(lookEvery)
	defer idle.Stop()
	var retry <-chan time.Time // while it is waited because work has failed
	look := false              // whether it is to be seen if the stream is there
	for wait := firstWait; ; {
		select {
		case m := <-r.live:
			if r.full() {
				r.missed()
				continue
			}
			r.message(m)
			if len(r.dirty) == 0 {
				continue
			}
		case <-r.signal:
		case <-tick.C:
			look = true
		case <-idle.C:
			r.look()
			continue
		case <-retry:
			retry = nil
		case <-r.s.closing.Done():
			return
		}
		if retry != nil {
			continue // messages of topics that have missed nothing do not wait
		}
		err := r.work(look)
		if err == nil {
			wait, look = firstWait, false
			continue
		}
		// The first may be that of a cut, or of a topic that has gone on meanwhile.
		if wait > firstWait || errors.Is(err, context.DeadlineExceeded) {
			r.setAway(err)
		}
		retry = time.After(wait)
		wait = min(2*wait, maxWait)
	}
}

// full is called when a message has been taken, and reports whether there may have been no room
// for others: of those that nats.go drops from a subscription in a row it reports only the first.
// It drops the rest, since all is read from the stream then.
func (r *reader) full() bool {
	n := len(r.live)
	if n < cap(r.live)-1 {
		return false
	}
	for range n {
		<-r.live
	}
	return true
}

// interval is how often is seen whether the stream is there: several times before an event expires, for r.current.
func (r *reader) interval() time.Duration {
	if age := r.s.o.MaxAge; age > 0 {
		return max(min(lookEvery, age/4), time.Millisecond)
	}
	return lookEvery
}

// message takes an event that has just been stored.
func (r *reader) message(m *nats.Msg) {
	token := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	t := r.active[token]
	if t == nil {
		return
	}
	seq, err1 := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
	last, err2 := strconv.ParseUint(m.Header.Get("Nats-Last-Sequence"), 10, 64)
	at, err3 := time.Parse(time.RFC3339Nano, m.Header.Get("Nats-Time-Stamp"))
	if err1 != nil || err2 != nil || err3 != nil {
		return // not the stream's
	}
	r.mu.Lock()
	check := r.check
	r.mu.Unlock()
	age := r.s.o.MaxAge
	expired := age > 0 && at.Sub(t.at) >= age && seq > r.s.end.Load().seq // as must be, in the same stream
	if !check && (t.cursor == 0 || seq <= t.cursor && at.After(t.at) || seq > t.cursor && last < t.cursor && !expired) {
		// The stream may be another, or begin at 1 again, or the newest that was read has been dropped.
		if r.verify(false) != nil {
			r.missed()
			check = true
		}
	}
	// One that is newer, but has a sequence that was used before, is of an older state of the stream.
	switch {
	case check || r.dirty[t] || last > t.cursor || seq <= last || seq <= t.cursor && at.After(t.at):
		r.dirty[t] = true // it will be read from the stream
	case seq > t.cursor:
		t.append([]stored{{seq, at, m.Header, m.Data}}, r.s.end.Load().epoch)
	}
}

// work does what is to be done beside messages, and if look is set it sees whether the stream is
// there. An error is that of the connection.
func (r *reader) work(look bool) error {
	if !r.s.nc.IsConnected() {
		return nil // reconnected will be called
	}
	began := time.Now()
	if err := r.begin(); err != nil {
		return err
	}
	r.mu.Lock()
	check := r.check
	r.check = false
	r.mu.Unlock()
	look = look || check || r.stream == nil
	if look {
		if err := r.verify(check); err != nil {
			r.mu.Lock()
			r.check = true
			r.mu.Unlock()
			return err
		}
	}
	if len(r.active) == 0 {
		r.current = began // nothing has been read that could be missed
	}
	if err := r.load(); err != nil {
		return err
	}
	r.mu.Lock()
	ahead := r.ahead
	r.ahead = nil
	for _, t := range ahead {
		t.ahead = false
	}
	r.mu.Unlock()
	for _, t := range ahead {
		t.mirror.Mark()
		r.dirty[t] = true
	}
	for t := range r.dirty {
		if err := r.catchUp(t); err != nil {
			for _, t := range ahead {
				r.isAhead(t)
			}
			return err
		}
		delete(r.dirty, t)
	}
	for _, t := range ahead {
		t.mirror.Current()
	}
	if look {
		r.current = began
	}
	r.setAway(nil)
	return nil
}

// begin subscribes to the topics that are to be read from now on: before their history is read,
// so that nothing is missed between.
func (r *reader) begin() error {
	r.mu.Lock()
	added := r.added
	r.added = nil
	r.mu.Unlock()
	for i, t := range added {
		sub, err := r.s.nc.ChanSubscribe(r.s.o.Stream+".live."+t.token, r.live)
		if err != nil {
			r.mu.Lock()
			r.added = append(added[i:], r.added...)
			r.mu.Unlock()
			return err
		}
		t.live = sub
		r.loading = append(r.loading, t)
	}
	if len(added) > 0 {
		return r.s.nc.FlushTimeout(patience) // the server has them now
	}
	return nil
}

// load reads the history of the topics that have been subscribed to.
func (r *reader) load() error {
	for len(r.loading) > 0 {
		t := r.loading[0]
		all, err := r.history(t, 0)
		if err != nil {
			return err
		}
		end := r.s.end.Load()
		epoch := end.epoch
		base := idOf(epoch, 0) // it has all that there ever were
		switch o := &r.s.o; {
		case o.History > 0 && len(all) >= o.History:
			base = idOf(epoch, all[0].seq-1)
		case o.MaxAge > 0 && len(all) > 0:
			base = "" // what there were has expired, if any
		case o.MaxAge > 0:
			base = idOf(epoch, end.seq) // what there were until then has expired
		}
		t.cursor = 0
		t.reached(all)
		r.active[t.token] = t
		r.loading[0] = nil
		r.loading = r.loading[1:]
		r.mu.Lock()
		r.reading++
		r.mu.Unlock()
		t.mirror.Load(base, events(all, epoch), sinceBy(all, epoch, base, r.skew))
	}
	return nil
}

// sinceBy returns a since of Mirror.Load for what a topic had when it was loaded.
func sinceBy(all []stored, epoch uint64, base string, skew time.Duration) func(time.Time) string {
	return func(t time.Time) string {
		n, _ := slices.BinarySearchFunc(all, t.Add(skew), func(m stored, t time.Time) int { return m.at.Compare(t) })
		switch {
		case len(all) == 0:
			return base
		case n == 0:
			return idOf(epoch, 0)
		}
		return idOf(epoch, all[n-1].seq)
	}
}

// verify sees whether the stream is another. If check is set events may have been missed, too.
func (r *reader) verify(check bool) error {
	ctx, cancel := context.WithTimeout(r.s.closing, patience)
	defer cancel()
	st, err := r.s.stream(ctx)
	if err != nil {
		return err
	}
	r.stream = st
	if ts := st.CachedInfo().TimeStamp; !ts.IsZero() {
		r.skew = time.Until(ts) // which was a moment ago
	}
	epoch := epochOf(st)
	old := r.s.end.Load().epoch
	for _, t := range r.active {
		if old != 0 && old != epoch {
			if err := r.lost(t, epoch); err != nil {
				return err // they are tried again
			}
			continue
		}
		if check {
			r.dirty[t] = true
		}
	}
	r.s.end.Store(&place{epoch, st.CachedInfo().State.LastSeq})
	return nil
}

// look stops reading topics without clients.
func (r *reader) look() {
	for token, t := range r.active {
		r.mu.Lock()
		t.again = false
		r.mu.Unlock()
		if !t.mirror.Unload() {
			continue
		}
		t.live.Unsubscribe() // an error is that of a connection that has ended
		delete(r.active, token)
		delete(r.dirty, t)
		r.mu.Lock()
		r.reading--
		if t.wanted = t.again; t.again {
			r.added = append(r.added, t)
			r.wake()
		}
		r.mu.Unlock()
	}
}
