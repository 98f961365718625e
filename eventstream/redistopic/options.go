package redistopic

import (
	"log/slog"
	"time"

	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/redisstream"
)

// Options configure a [Store]. All processes that share topics must have the same Prefix,
// Shards and History.
type Options struct {
	// Prefix begins the name of every key in Redis: PREFIX{SHARD}TOPIC. It must be printable
	// ASCII without spaces and braces. Default "chert:topic:".
	Prefix string
	// Shards is over how many hash slots of a Cluster the topics are spread. A process reads
	// each with a command of its own. Default 16 with a Cluster and otherwise 1; at most 1024.
	// Negative is an error: there must be one.
	Shards int
	// History is how many events of a topic Redis keeps, at least; up to 100 more are there.
	// Default 1000; negative: all, of which a process reads 10,000 when it begins.
	History int
	// Expire is after how long without a new event a topic's history is deleted, which keeps
	// names that are not used any more from filling Redis. Default 24 h; negative: never.
	Expire time.Duration
	// Topics are the options of the topics in this process. HistoryEvents is by default History.
	Topics eventstream.TopicOptions
	// Timeout is how long Publish waits for Redis. Default 2 s, at least 1 ms; negative is an
	// error.
	Timeout time.Duration
	// Queue is how many events wait while Redis is away; Publish then returns neither an ID
	// nor an error. They are lost if the process ends. Default, and negative: none; Publish
	// returns an error.
	Queue int
	// Logger receives a line when Redis fails and one when it responds again. Default
	// slog.Default.
	Logger *slog.Logger
}

func (o *Options) defaults() (redisstream.Options, eventstream.TopicOptions) {
	if o == nil {
		o = new(Options)
	}
	d := redisstream.Options{Package: "redistopic", Prefix: o.Prefix, What: "event streams",
		Shards: o.Shards, MaxLen: o.History,
		Expire: o.Expire, Timeout: o.Timeout, Queue: max(o.Queue, 0), Logger: o.Logger}
	if d.Prefix == "" {
		d.Prefix = "chert:topic:"
	}
	if d.MaxLen == 0 {
		d.MaxLen = 1000
	}
	if d.Expire == 0 {
		d.Expire = 24 * time.Hour
	}
	if d.Timeout == 0 {
		d.Timeout = 2 * time.Second
	}
	t := o.Topics
	if t.HistoryEvents == 0 {
		t.HistoryEvents = d.MaxLen
	}
	return d, t
}
