package conntest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// testStress: many connections on which anything happens at any time. A client
// checks each answer that it gets whole, and every link ends.
func testStress(x *suite) {
	seed := uint64(time.Now().UnixNano())
	defer func() {
		if x.Failed() {
			x.Logf("seed %d", seed)
		}
	}()
	var all sync.WaitGroup
	var checked atomic.Int64
	for i := range 24 {
		st := &stress{x: x, rnd: rand.New(rand.NewPCG(seed, uint64(i))), ends: i%2 == 0}
		st.s = &script{
			line: st.line, onEOF: st.eof,
			onExpired: func(*script) conn.Next { return conn.Close },
		}
		o := Options{Small: i%3 == 0}
		if i%4 == 0 {
			o.Limits = conn.Limits{ReadStall: int64(moment), WriteStall: int64(moment)}
		}
		c := x.open(o, st.s)
		rnd := rand.New(rand.NewPCG(seed, uint64(i)+1000))
		all.Go(func() {
			n, err := st.client(c, rnd)
			checked.Add(int64(n))
			if n < stressLines && !st.ends {
				x.Errorf("connection %d: %d of %d answers, then %v", i, n, stressLines, err)
			}
			c.closes()
		})
	}
	all.Wait()
	if x.Failed() {
		return
	}
	x.Logf("%d answers", checked.Load())
}

const stressLines = 120

// stress is one connection: the first half of its lines is served one after
// another, the second by runs beside each other.
type stress struct {
	x    *suite
	s    *script
	rnd  *rand.Rand // the owner's
	ends bool       // it may end the connection
	runs int        // the owner's
	over bool       // the peer has sent all; the owner's
}

func stressAnswer(line string, n int) []byte {
	return append(fmt.Appendf(nil, "%s %d:", line, n), strings.Repeat(line+"|", n/(len(line)+1)+1)[:n]...)
}

func (st *stress) eof(*script) conn.Next {
	if st.over = true; st.runs > 0 {
		return conn.More
	}
	return conn.Close
}

func (st *stress) size() int {
	switch st.rnd.IntN(12) {
	case 0:
		return st.rnd.IntN(300_000)
	case 1, 2:
		return st.rnd.IntN(20_000)
	}
	return st.rnd.IntN(100)
}

func (st *stress) line(s *script, line string) conn.Next {
	if line == "share" {
		s.Share()
		return conn.More
	}
	p := stressAnswer(line, st.size())
	how := st.rnd.IntN(40)
	if strings.HasPrefix(line, "beside") && how < 30 {
		st.runs++
		s.start(func() {
			for range how {
				runtime.Gosched()
			}
			s.push(p)
		}, func() conn.Next {
			if st.runs--; st.runs == 0 && st.over {
				return conn.Close
			}
			return conn.More
		})
		return conn.More
	}
	cut := st.rnd.IntN(len(p) + 1)
	switch {
	case how < 12:
		return s.give(&conn.Write{A: p[:cut], B: p[cut:], Cork: how%2 == 0, Holder: &holder{t: st.x.T}})
	case how < 15:
		return s.give(&conn.Write{A: p, Cork: how%2 == 0})
	}
	ends := st.ends && st.rnd.IntN(30) == 0
	if ends {
		s.SetDeadline(later(how % 4))
	}
	return s.either(how%3 == 0, func() conn.Next {
		switch {
		case how < 18:
			for range 50 {
				runtime.Gosched()
			}
		case how < 20:
			time.Sleep(time.Duration(how) * 100 * time.Microsecond)
		case how < 22:
			s.Lent().WatchPeer()
		case how < 24:
			s.Lent().SetReadDeadline(time.Now().Add(-time.Second))
			s.Lent().Fill()
		case how < 26 && ends:
			runtime.Goexit()
		case how < 28 && ends:
			return []conn.Next{conn.Close, conn.Linger, conn.Reset}[how%3]
		}
		if how%2 == 0 {
			return s.give(&conn.Write{A: p[:cut], B: p[cut:]})
		}
		return unless(s.Write(p[:cut], p[cut:]))
	})
}

// client sends lines and checks their answers, in order and then in any. It
// returns how many came, and what came instead of the next.
func (st *stress) client(c *client, rnd *rand.Rand) (n int, err error) {
	var mu sync.Mutex
	waits := map[string]bool{} // for an answer
	sent := make(chan bool)
	go func() {
		defer close(sent)
		for i := range stressLines {
			line := fmt.Sprintf("line%d", i)
			if i == stressLines/2 {
				fmt.Fprint(c.Conn, "share\n")
			}
			if i >= stressLines/2 {
				line = fmt.Sprintf("beside%d", i)
			}
			mu.Lock()
			waits[line] = true
			mu.Unlock()
			k := rnd.IntN(len(line))
			if _, err := fmt.Fprint(c.Conn, line[:k]); err != nil {
				return
			}
			fmt.Fprint(c.Conn, line[k:]+"\n")
			if st.ends && rnd.IntN(200) == 0 {
				[]func(){
					func() { c.command(conn.Kill) },
					func() { c.command(conn.Drain) },
					func() { c.vanish() },
				}[rnd.IntN(3)]()
			}
		}
		if c.canHalfClose() {
			c.Conn.(interface{ CloseWrite() error }).CloseWrite() // c may have vanished
		}
	}()
	defer func() { <-sent }()
	for n < stressLines {
		// For each answer: all may take longer on a busy machine.
		c.Conn.SetDeadline(time.Now().Add(servertest.Patience))
		var head string
		if head, err = c.R.ReadString(':'); err != nil {
			break
		}
		var line string
		var size int
		fmt.Sscanf(strings.TrimSuffix(head, ":"), "%s %d", &line, &size)
		mu.Lock()
		ok := waits[line]
		delete(waits, line)
		mu.Unlock()
		if want := fmt.Sprintf("line%d", n); !ok || n < stressLines/2 && line != want {
			st.x.Errorf("got the answer %.100q, want %q", head, want)
			break
		}
		b := make([]byte, size)
		if _, err = io.ReadFull(c.R, b); err != nil { // none with the last bytes, with which TLS 1.2 tells the end
			break
		}
		same(st.x.T, b, stressAnswer(line, size)[len(head):])
		n++
	}
	c.vanish() // the sender may wait for a peer that does not read any more
	return n, err
}
