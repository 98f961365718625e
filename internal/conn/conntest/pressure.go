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
	var written atomic.Int64
	done := make(chan error, 1)
	c := x.begin(Options{Small: true}, &script{line: inUser(pooled, func(s *script, _ string) conn.Next {
		for p := range slices.Chunk(pattern(), 7000) {
			if err := s.Write(p[:len(p)/2], p[len(p)/2:]); err != nil {
				done <- err
				return conn.Close
			}
			written.Add(int64(len(p)))
		}
		done <- nil
		return conn.More
	})})
	last, times := int64(-1), 0
	servertest.Eventually(x.T, "it waits", func() bool { // until it seems to have stopped
		if n := written.Load(); n != last {
			last, times = n, 0
		}
		times++
		return times > 50
	})
	if last > large/2 {
		x.Errorf("%d bytes were taken for a peer that does not read", last)
	}
	c.gets(pattern())
	if err := servertest.Await(x.T, done, "all to be sent"); err != nil {
		x.Error(err)
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
