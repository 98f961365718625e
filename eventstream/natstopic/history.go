package natstopic

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/chert-http/chert/eventstream"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// stream returns the stream, which it makes if there is none.
func (s *Store) stream(ctx context.Context) (jetstream.Stream, error) {
	st, err := s.js.Stream(ctx, s.o.Stream)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return st, err
	}
	storage := jetstream.FileStorage
	if s.o.Memory {
		storage = jetstream.MemoryStorage
	}
	st, err = s.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: s.o.Stream, Description: "topics of chert", Subjects: []string{s.o.Stream + ".topic.>"},
		MaxMsgsPerSubject: int64(max(s.o.History, -1)), MaxAge: s.o.MaxAge, Discard: jetstream.DiscardOld,
		Storage: storage, Replicas: s.o.Replicas,
		RePublish: &jetstream.RePublish{Source: s.o.Stream + ".topic.>", Destination: s.o.Stream + ".live.>"},
	})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another process has been faster
		return s.js.Stream(ctx, s.o.Stream)
	}
	return st, err
}

// epochOf returns when a stream was made, in milliseconds since 1970.
func epochOf(st jetstream.Stream) uint64 { return uint64(st.CachedInfo().Created.UnixMilli()) }

// place is a position in a stream: after the event with a sequence.
type place struct{ epoch, seq uint64 }

// stored is an event in the stream.
type stored struct {
	seq    uint64
	at     time.Time // when it was stored
	header nats.Header
	data   []byte
}

// atOnce is how many events are asked for at once.
const atOnce = 500

var errIncomplete = errors.New("natstopic: the server has not sent all events that it has")

// history returns the events of a topic from a sequence on, all that are there now.
func (r *reader) history(t *topic, from uint64) ([]stored, error) {
	return r.s.history(r.stream, t, from)
}

func (s *Store) history(st jetstream.Stream, t *topic, from uint64) (all []stored, err error) {
	ctx, cancel := context.WithTimeout(s.closing, patience)
	defer cancel()
	c := jetstream.ConsumerConfig{FilterSubject: t.subject(), AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true,
		InactiveThreshold: 10 * time.Second, Replicas: 1, DeliverPolicy: jetstream.DeliverAllPolicy}
	if from > 0 {
		c.DeliverPolicy, c.OptStartSeq = jetstream.DeliverByStartSequencePolicy, from
	}
	consumer, err := st.CreateConsumer(ctx, c)
	if err != nil {
		return nil, err
	}
	defer st.DeleteConsumer(ctx, consumer.CachedInfo().Name) // an error is no matter: it expires
	for left := consumer.CachedInfo().NumPending; left > 0; {
		batch, err := consumer.FetchNoWait(atOnce)
		if err != nil {
			return nil, err
		}
		n := uint64(0)
		for m := range batch.Messages() {
			meta, err := m.Metadata()
			if err != nil {
				return nil, err
			}
			all = append(all, stored{meta.Sequence.Stream, meta.Timestamp, m.Headers(), m.Data()})
			left = meta.NumPending
			n++
		}
		if err := batch.Error(); err != nil {
			return nil, err
		}
		if n == 0 {
			// The connection was cut, or what was pending has been dropped. It must not pass for what there
			// is: clients would be told of a gap.
			return nil, errIncomplete
		}
	}
	return all, nil
}

// lost goes on with what there is of a topic that has lost something.
func (r *reader) lost(t *topic, epoch uint64) error {
	all, err := r.history(t, 0)
	if err != nil {
		return err
	}
	r.s.gaps.Add(1)
	t.cursor, t.at = 0, time.Time{} // the next may have a lower sequence, or the same
	t.reached(all)
	t.mirror.Lost(events(all, epoch))
	return nil
}

// catchUp reads what a topic has missed.
func (r *reader) catchUp(t *topic) error {
	if r.active[t.token] != t {
		return nil
	}
	all, err := r.history(t, t.cursor)
	if err != nil {
		return err
	}
	epoch := r.s.end.Load().epoch
	there := len(all) > 0 && all[0].seq == t.cursor
	switch {
	case t.cursor == 0 && (r.s.o.MaxAge == 0 || time.Since(r.current) < r.s.o.MaxAge): // there has been none
	case there && all[0].at.Equal(t.at):
		all = all[1:]
	case !there && r.expired(t, len(all)):
	default:
		return r.lost(t, epoch)
	}
	if len(all) > 0 {
		t.append(all, epoch)
	}
	return nil
}

// expired reports whether the newest event of a topic is not there because of its age, and nothing
// but that: what was stored since r.current has not reached the age yet.
func (r *reader) expired(t *topic, more int) bool {
	o := &r.s.o
	return o.MaxAge > 0 && time.Since(t.at) >= o.MaxAge && time.Since(r.current) < o.MaxAge &&
		(o.History < 0 || more < o.History)
}

// has reports whether the stream has the event with a token, which was published after the stream
// had reached a place.
func (t *topic) has(token string, after *place) (bool, error) {
	ctx, cancel := context.WithTimeout(t.s.closing, patience)
	defer cancel()
	st, err := t.s.stream(ctx)
	if err != nil {
		return false, err
	}
	from := uint64(0) // all there is
	if epochOf(st) == after.epoch {
		from = after.seq + 1
	}
	all, err := t.s.history(st, t, from)
	if err != nil {
		return false, err
	}
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].header.Get(jetstream.MsgIDHeader) == token {
			return true, nil
		}
	}
	return false, nil
}

// reached notes the newest of some events that have been read.
func (t *topic) reached(all []stored) {
	if n := len(all); n > 0 {
		t.cursor, t.at = all[n-1].seq, all[n-1].at
	}
}

// append passes events on.
func (t *topic) append(more []stored, epoch uint64) {
	t.reached(more)
	t.s.read.Add(uint64(len(more)))
	t.mirror.Append(events(more, epoch))
}

func events(all []stored, epoch uint64) []eventstream.Event {
	out := make([]eventstream.Event, len(all))
	for i := range all {
		m := &all[i]
		out[i] = eventstream.Event{ID: idOf(epoch, m.seq), Type: typeOf(m.header), Data: string(m.data)}
		if ms, err := strconv.ParseInt(m.header.Get(fieldRetry), 10, 64); err == nil && ms > 0 {
			out[i].Retry = time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
		}
	}
	return out
}
