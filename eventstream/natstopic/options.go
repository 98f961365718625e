package natstopic

import (
	"log/slog"
	"time"

	"github.com/chert-http/chert/eventstream"
	"github.com/nats-io/nats.go"
)

// Options configure a [Store]. All processes that share topics must have the same Stream and
// History.
type Options struct {
	// Stream is the name of the stream of JetStream, of letters, digits, "-" and "_". It has the
	// subjects STREAM.topic.> and republishes to STREAM.live.>. It is made if it does not exist;
	// one that exists is not changed. Default "chert".
	Stream string
	// History is how many events of a topic the stream keeps, at least one. Default 1000;
	// negative: all.
	History int
	// MaxAge is for how long the stream keeps an event. Default, and negative: for ever. With
	// it a process that has just begun to read a topic, or could not read for that long, cannot
	// tell whether a client has missed older events than the oldest that is there, and says that
	// it has; so may one that a client comes to from such a process, if it has got no event there.
	MaxAge time.Duration
	// Replicas is on how many servers the stream is. Default 1, at most 5; negative is an error.
	Replicas int
	// Memory keeps the stream in memory instead of files: it is lost when all its servers end.
	Memory bool
	// Topics are the options of the topics in this process. HistoryEvents is by default
	// History.
	Topics eventstream.TopicOptions
	// Timeout is how long Publish waits for NATS. Default 2 s, at least 1 ms; negative is an
	// error.
	Timeout time.Duration
	// Queue is how many events wait while NATS is away; Publish then returns neither an ID nor
	// an error. They are lost if the process ends. Default, and negative: none; Publish returns
	// an error.
	Queue int
	// NATS are more options of the connection: credentials, TLS, names.
	NATS []nats.Option
	// Logger receives a line when NATS fails and one when it responds again. Default
	// slog.Default.
	Logger *slog.Logger

	room int // that of tests, or the constant
}
