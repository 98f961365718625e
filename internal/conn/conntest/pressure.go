package conntest

import (
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// testWriteWaits: Write goes on without the peer until the queue is full, then
// waits, and is woken as the peer reads.
func testWriteWaits(x *suite, pooled bool) {
	written, done := new(atomic.Int64), make(chan error, 1)
	x.bounded(written, done, &script{line: inUser(pooled, func(s *script, _ string) conn.Next {
		err := inPieces(func(p []byte) error { return s.Write(p[:len(p)/2], p[len(p)/2:]) }, written)
		done <- err
		return unless(err)
	})})
}

// testQueueFull: Offer reports when much is queued, and Writable follows.
func testQueueFull(x *suite) {
	var fulls atomic.Int64
	queued, done := new(atomic.Int64), make(chan error, 1)
	writable := make(chan bool, 100)
	s := &script{onWritable: func(*script) conn.Next { writable <- true; return conn.More }}
	s.line = beside(func(s *script) {
		done <- inPieces(func(p []byte) error {
			full, err := s.queue(p)
			if full && err == nil {
				fulls.Add(1)
				<-writable
			}
			return err
		}, queued)
	})
	x.bounded(queued, done, s)
	servertest.Eventually(x.T, "each full queue is followed by Writable", func() bool {
		return fulls.Load() > 0 && int64(s.writables.Load()) == fulls.Load()
	})
}

// inPieces has all of pattern sent by f, and counts what that has taken.
func inPieces(f func(p []byte) error, taken *atomic.Int64) error {
	for p := range slices.Chunk(pattern(), 7000) {
		if err := f(p); err != nil {
			return err
		}
		taken.Add(int64(len(p)))
	}
	return nil
}

// bounded checks that s, which sends pattern, goes on without the peer for a part of that, and that all of it
// comes.
func (x *suite) bounded(taken *atomic.Int64, done <-chan error, s *script) {
	x.Helper()
	c := x.begin(Options{Small: true}, s)
	last, times := int64(-1), 0
	servertest.Eventually(x.T, "it waits", func() bool { // until it seems to have stopped
		if n := taken.Load(); n != last {
			last, times = n, 0
		}
		times++
		return times > 50
	})
	if n := taken.Load(); n > large/2 {
		x.Errorf("%d bytes were taken for a peer that does not read", n)
	}
	c.gets(pattern())
	if err := servertest.Await(x.T, done, "all to be sent"); err != nil {
		x.Error(err)
	}
}

// testFiles: parts of files between answers, sent from the session and by user
// code.
func testFiles(x *suite) {
	parts := []struct{ offset, n int }{
		{0, 0}, {0, 1}, {5, 1000}, {100, large - 100}, {large, 0}, {large - 3, 3}, {7, 300_000},
	}
	for where := range 3 {
		file := patternFile(x.T)
		var holders []*holder
		s := &script{line: func(s *script, line string) conn.Next {
			var i int
			fmt.Sscan(line, &i)
			h := &holder{t: x.T, use: func() { s.Out().Blocked() }}
			holders = append(holders, h)
			send := func() conn.Next {
				w := &conn.Write{A: []byte("file "), B: []byte(line + "\n"), File: file, Holder: h}
				w.Offset, w.Len = int64(parts[i].offset), int64(parts[i].n)
				if err := s.Send(w); err != nil {
					x.Errorf("part %d: %v", i, err)
					return conn.Close
				}
				return conn.More
			}
			if where == 0 {
				return send()
			}
			return s.either(where == 2, send)
		}}
		c := x.open(Options{Small: where != 1}, s)
		c.sendLines(len(parts))
		for i, p := range parts {
			c.Want(fmt.Sprintf("file %d\n", i))
			c.gets(pattern()[p.offset : p.offset+p.n])
		}
		c.closes()
		for _, h := range holders {
			h.gone()
		}
	}
}

// testFileEnds: the peer of a file that has become shorter, or that its holder does not want sent any more, gets
// a part of it and the end.
func testFileEnds(x *suite) {
	for _, shorter := range []bool{true, false} {
		file := patternFile(x.T)
		var failing atomic.Bool
		h := &holder{t: x.T, check: func() error {
			if failing.Load() {
				return os.ErrInvalid
			}
			return nil
		}}
		c := x.begin(Options{Small: true}, &script{line: func(s *script, line string) conn.Next {
			return s.give(&conn.Write{A: []byte("x"), File: file, Len: large, Holder: h})
		}})
		c.Want("x")
		c.gets(pattern()[:1000])
		if !shorter {
			failing.Store(true)
		} else if err := file.Truncate(large * 3 / 4); err != nil {
			x.Fatal(err)
		}
		got := c.rest()
		if len(got) >= large-1000 {
			x.Errorf("%d bytes came", len(got))
		} else {
			same(x.T, got, pattern()[1000:][:len(got)])
		}
		c.closes()
		h.gone()
	}
}

// testSendFile: Lent.SendFile from an offset and from the file's own, up to its
// end.
func testSendFile(x *suite, pooled bool) {
	s := &script{line: inUser(pooled, func(s *script, line string) conn.Next {
		var from, n, want int64
		fmt.Sscan(line, &from, &n, &want)
		file := patternFile(x.T)
		at := from
		if from < 0 {
			at = -from
			file.Seek(at, io.SeekStart)
		}
		sent, ok, err := s.Lent().SendFile(file, max(from, -1), n)
		if !ok && sent == 0 && err == nil {
			// It cannot be done here.
			s.Write(pattern()[at:at+want], []byte("."))
			return conn.More
		}
		defer s.Write([]byte("."), nil)
		if sent != want || err != nil {
			x.Errorf("%s: %d bytes were sent, %v", line, sent, err)
		}
		if now, _ := file.Seek(0, io.SeekCurrent); from < 0 && now != at+want || from >= 0 && now != 0 {
			x.Errorf("%s: the file is at %d", line, now)
		}
		return conn.More
	})}
	c := x.open(Options{Small: true}, s)
	for _, p := range []struct{ from, n, want int }{
		{0, 10, 10}, {1000, 1 << 20, 1 << 20}, {large - 10, 100, 10},
		{-10, 100, 100}, {-1000, 1 << 20, 1 << 20}, {-large + 10, 100, 10},
	} {
		c.Send(fmt.Sprintln(p.from, p.n, p.want))
		at := max(p.from, -p.from)
		c.gets(pattern()[at : at+p.want])
		c.Want(".")
	}
}

// testSteady: a peer that reads slowly but steadily gets all, though it takes
// longer than Limits.WriteStall.
func testSteady(x *suite) {
	const stall = 5 * time.Second
	for _, line := range []string{"user\n", "session\n"} {
		for try := 1; ; try++ {
			slowest, err := x.steady(line, stall)
			if err == nil {
				break
			}
			// On a machine that is so busy this is no steady reader.
			if slowest < stall/2 || try == 5 {
				x.Fatalf("%q, where a quarter of a stall's reads took %v at most: %v", line, slowest, err)
			}
		}
	}
}

// steady reads an answer for twice the time of a stall and then the rest, and returns how long
// as many reads took at most as there are in a quarter of a stall.
func (x *suite) steady(line string, stall time.Duration) (slowest time.Duration, err error) {
	const reads = 60 // in a stall
	wrote := make(chan error, 1)
	s := &script{line: func(s *script, line string) conn.Next {
		if line == "user" {
			return s.user(func() conn.Next {
				wrote <- s.Write(pattern(), nil)
				return conn.Close
			})
		}
		wrote <- s.Send(&conn.Write{A: pattern(), Holder: &holder{t: x.T}})
		return conn.Close
	}}
	c := x.open(Options{Small: true, Limits: conn.Limits{WriteStall: int64(stall)}}, s)
	c.Send(line)
	var got []byte
	begun := time.Now()
	for at := []time.Time{begun}; time.Since(begun) < 2*stall; time.Sleep(stall / reads) {
		p := make([]byte, 16<<10)
		// As much each time with a layer as without: a receiver's buffer hides
		// what is less.
		n, err := io.ReadFull(c.R, p)
		at = append(at, time.Now())
		slowest = max(slowest, at[len(at)-1].Sub(at[max(0, len(at)-1-reads/4)]))
		if got = append(got, p[:n]...); err != nil {
			return slowest, fmt.Errorf("after %d bytes: %w", len(got), err)
		}
	}
	rest, err := io.ReadAll(c.R)
	if got = append(got, rest...); err != nil {
		return slowest, fmt.Errorf("after %d bytes: %w", len(got), err)
	}
	same(x.T, got, pattern())
	s.isClosed()
	return slowest, <-wrote
}
