package redisstream

import (
	"bytes"
	"context"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// go-redis encodes the arguments of a command one by one each time. The command of a reader has
// two for each of its streams, perhaps thousands, of which few are others than the last time, so
// it is kept as it is sent: go-redis is given a short command that stands for it, which the
// connection replaces. All else about connections is go-redis's.

// command is the encoded command that reads the streams of a reader.
type command struct {
	b     []byte
	block time.Duration // for which it blocks
	// at is where the cursors are, the last arguments: those of the streams in order, and of wakeup.
	at []int
}

// encode makes c the command for some streams, and for wakeup from the entry after cursor on.
func (c *command) encode(block time.Duration, streams []*Stream, wakeup, cursor string) {
	c.block, c.at = block, c.at[:0]
	c.b = append(c.b[:0], '*')
	c.b = strconv.AppendInt(c.b, int64(2*len(streams)+8), 10)
	c.b = append(c.b, "\r\n"...)
	for _, word := range [...]string{"xread", "count", strconv.Itoa(perStream), "block",
		strconv.FormatInt(block.Milliseconds(), 10), "streams"} {
		c.append(word)
	}
	for i, s := range streams {
		s.index = i
		c.append(s.key)
	}
	c.append(wakeup)
	for _, s := range streams {
		c.at = append(c.at, c.append(s.cursor))
	}
	c.at = append(c.at, c.append(cursor))
}

// append appends an argument, and returns where it is.
func (c *command) append(word string) (at int) {
	at = len(c.b)
	c.b = appendWord(c.b, word)
	return at
}

func appendWord(b []byte, word string) []byte {
	b = append(b, '$')
	b = strconv.AppendInt(b, int64(len(word)), 10)
	b = append(b, "\r\n"...)
	return append(append(b, word...), "\r\n"...)
}

// set changes a cursor. It reports whether all that follows has moved: an entry's ID is longer than that of none.
func (c *command) set(i int, cursor string) (moved bool) {
	at, end := c.at[i], len(c.b)
	if i+1 < len(c.at) {
		end = c.at[i+1]
	}
	was := len(c.b)
	c.b = slices.Replace(c.b, at, end, appendWord(make([]byte, 0, 64), cursor)...)
	by := len(c.b) - was
	if by == 0 {
		return false
	}
	for j := i + 1; j < len(c.at); j++ {
		c.at[j] += by
	}
	return true
}

// standIn is the command that stands for that of a reader. The first argument is secret: what
// is written in pieces might begin one with the bytes of this command.
func (r *reader) standIn(ctx context.Context) *redis.XStreamSliceCmd {
	return redis.NewXStreamSliceCmd(ctx, "xread", r.c.secret, r.number)
}

// replace returns the command that p stands for, or p.
func (c *Client) replace(p []byte) []byte {
	rest, ok := bytes.CutPrefix(p, c.standing)
	if !ok {
		return p
	}
	_, rest, _ = bytes.Cut(rest, []byte("\r\n"))
	n, err := strconv.Atoi(string(bytes.TrimSuffix(rest, []byte("\r\n"))))
	if err != nil || n < 0 || n >= len(c.readers) {
		return p
	}
	return c.readers[n].command.b
}

// hook has the connections of c replace commands.
type hook struct{ c *Client }

// DialHook implements redis.Hook.
func (h hook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := next(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if sys, ok := nc.(syscall.Conn); ok { // by which go-redis looks whether it has been closed
			return &checked{replacing{nc, h.c}, sys}, nil
		}
		return &replacing{nc, h.c}, nil
	}
}

// ProcessHook implements redis.Hook.
func (hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// replacing is a connection that sends commands instead of those that stand for them.
type replacing struct {
	net.Conn
	c *Client
}

type checked struct {
	replacing
	syscall.Conn
}

// Write implements net.Conn.
func (r *replacing) Write(p []byte) (int, error) {
	n, err := r.Conn.Write(r.c.replace(p))
	if err != nil {
		return min(n, len(p)), err
	}
	return len(p), nil
}
