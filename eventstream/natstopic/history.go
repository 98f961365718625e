package natstopic

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/chert-http/chert/eventstream"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

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
		out[i] = eventstream.Event{ID: idOf(epoch, m.seq), Type: m.header.Get(fieldType), Data: string(m.data)}
		if ms, err := strconv.ParseInt(m.header.Get(fieldRetry), 10, 32); err == nil && ms > 0 {
			out[i].Retry = time.Duration(ms) * time.Millisecond
		}
	}
	return out
}
