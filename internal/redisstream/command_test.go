package redisstream

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

// What set makes of a command is what encode would make of it, without an allocation.
func TestCommandSet(t *testing.T) {
	var streams []*Stream
	for i := range 20 {
		streams = append(streams, &Stream{key: fmt.Sprint("{0}topic", i), cursor: "0-0"})
	}
	var got, want command
	got.encode(time.Second, streams, "{0}wake", "0-0")
	woken := "0-0"
	for i, set := range []struct {
		at     int
		cursor string
	}{
		{0, "1764322000000-0"}, {0, "1764322000001-0"}, {0, "1764322000001-10"}, {0, "0-0"},
		{7, "1764322000000-9"}, {8, "1764322000000-0"}, {7, "5-1"},
		{19, "1764322000000-123456"}, {20, "1764322000000-0"}, {20, "1764322000000-1"}, {1, "1764322000000-0"},
	} {
		if got.set(set.at, set.cursor); set.at < len(streams) {
			streams[set.at].cursor = set.cursor
		} else {
			woken = set.cursor
		}
		want.encode(time.Second, streams, "{0}wake", woken)
		if !bytes.Equal(got.b, want.b) {
			t.Fatalf("change %d: %q, want %q", i, got.b, want.b)
		}
	}
	if n := testing.AllocsPerRun(100, func() { got.set(3, "1764322000000-0"); got.set(3, "0-0") }); n != 0 {
		t.Errorf("set allocates %v times", n)
	}
}

// When many streams have their first entry at once the command is encoded again, once.
func TestManyFirstEntries(t *testing.T) {
	t.Parallel()
	r := &reader{}
	for i := range 2 * maxMoves {
		r.active = append(r.active, &Stream{key: fmt.Sprint("{0}topic", i), cursor: "0-0"})
	}
	r.command.encode(time.Second, r.active, "{0}wake", "0-0")
	for i := range r.active {
		if want := i >= maxMoves; r.changed != want {
			t.Fatalf("after %d moves the command is to be encoded again: %v", i, r.changed)
		}
		r.advance(i, "1764322000000-0")
	}
}

// Errors that pass are recognized, also as scripts of Redis 5 and 6 report them.
func TestTemporary(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want bool
	}{
		{"READONLY You can't write against a read only replica.", true},
		{"ERR Error running script (call to f_0123): @user_script:25: @user_script: 25: -READONLY You can't write against " +
			"a read only replica. ", true},
		{"ERR Error running script (call to f_0123): @user_script:25: @user_script: 25: -OOM command not allowed when used " +
			"memory > 'maxmemory'. ", true},
		{"ERR Error running script (call to f_0123): @user_script:25: WRONGTYPE Operation against a key holding the wrong " +
			"kind of value", false},
		{"WRONGTYPE Operation against a key holding the wrong kind of value", false},
	} {
		if got := Temporary(proto(tt.text)); got != tt.want {
			t.Errorf("%q: %v", tt.text, got)
		}
	}
}

// proto is an error that Redis sends.
type proto string

func (p proto) Error() string { return string(p) }
func (p proto) RedisError()   {}
