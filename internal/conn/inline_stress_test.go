//go:build linux || darwin

package conn

import (
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// Many pipelining clients whose handlers are quick or not at random, and
// compute, wait, read bodies, hijack and end badly, some on the loop. Every
// answer comes whole and in order, up to the end of its connection, and a
// connection that a handler did not end serves all.
func TestInlineStress(t *testing.T) {
	t.Parallel()
	seed := time.Now().UnixNano()
	rounds := 4
	if testing.Short() {
		rounds = 1
	}
	for i := range rounds {
		inlineStressRound(t, seed+int64(i))
	}
}

func inlineStressRound(t *testing.T, seed int64) {
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	rnd := rand.New(rand.NewSource(seed))
	r := newRig(t, Limits{})
	const n, lines = 24, 120
	var fakes []*fake
	var all sync.WaitGroup
	var checked atomic.Int64
	var pooled, inline, waited, late atomic.Int64
	for i := range n {
		random := rand.New(rand.NewSource(rnd.Int63())) // the owner's
		f := &fake{whole: rnd.Intn(2) == 0}
		quick := map[string]bool{} // Feed and Quick must agree
		f.fed = func(f *fake, line string) {
			clear(quick)
			quick[line] = random.Intn(12) > 0
		}
		f.quickly = func(line string) bool { return quick[line] }
		ends := rnd.Intn(2) == 0 // its handlers may end the connection
		f.serve = func(f *fake, line string) Next {
			v := inlineStressServe(f, line, random, ends)
			switch {
			case f.lease == 0:
				pooled.Add(1)
			case f.OnLoop():
				inline.Add(1)
			case f.waited():
				waited.Add(1)
			default:
				late.Add(1)
			}
			return v
		}
		c := r.open(f)
		fakes = append(fakes, f)
		clientRnd := rand.New(rand.NewSource(rnd.Int63()))
		all.Go(func() {
			k := inlineStressClient(t, c, i, lines, clientRnd)
			checked.Add(int64(k))
			if k < lines && !ends {
				t.Errorf("connection %d: %d of %d answers", i, k, lines)
			}
			c.Close()
		})
	}
	all.Wait()
	for i, f := range fakes {
		select {
		case <-f.closed:
		case <-time.After(servertest.Patience):
			t.Fatalf("connection %d did not end: state %b", i, f.state.Load())
		}
	}
	r.alive()
	if testing.Verbose() {
		t.Logf("%d answers; pooled %d, inline %d, waited %d, overstayed %d", checked.Load(),
			pooled.Load(), inline.Load(), waited.Load(), late.Load())
	}
}

// inlineStressServe answers "<line>" with "<line> <n>\n" and n bytes. A line
// "<id> <n>" is followed by a body of n bytes, which is part of the answer's
// line.
func inlineStressServe(f *fake, line string, rnd *rand.Rand, ends bool) Next {
	raw := string(f.raw)
	body := 0
	if _, b, ok := strings.Cut(line, " "); ok {
		fmt.Sscan(b, &body)
	}
	if f.raw != nil && body > 0 {
		// Its body comes after what is served where it lies.
		f.Discard(len(f.raw))
		f.raw = nil
	}
	got := make([]byte, body)
	if _, err := io.ReadFull(readerOf{f}, got); errors.Is(err, net.ErrClosed) {
		return Close // killed
	} else if err != nil {
		f.t.Errorf("the body of %q: %v", line, err)
		return Close
	}
	switch k := rnd.Intn(60); {
	case k < 1:
		for end := sys.Nanotime() + int64(2*time.Millisecond); sys.Nanotime() < end; {
		}
	case k < 2:
		for f.OnLoop() { // however long 2 ms are on this machine
			runtime.Gosched()
		}
	case k < 4:
		ch := make(chan bool)
		go func() {
			runtime.Gosched()
			close(ch)
		}()
		<-ch
	case k < 6:
		// Only the loop ends it: the goroutine that holds the loop must lose it.
		ch := make(chan bool)
		if f.loop.Do(func() { close(ch) }) {
			<-ch
		}
	case k < 10:
		runtime.Gosched()
	case !ends:
	case k < 11:
		runtime.Goexit()
	case k < 12:
		return []Next{Close, Linger}[rnd.Intn(2)]
	case k < 13 && f.raw == nil:
		nc, _, err := f.Hijack()
		if err == nil {
			nc.Close()
			return Detached
		}
		return Close
	}
	if f.raw != nil && string(f.raw) != raw {
		f.t.Errorf("the bytes of %q have become %q", raw, f.raw)
	}
	n := rnd.Intn(50)
	if rnd.Intn(20) == 0 {
		n = rnd.Intn(100_000)
	}
	out := append(fmt.Appendf(nil, "%s%s %d\n", strings.ReplaceAll(line, " ", "+"), got, n), stressBody(line, n)...)
	switch rnd.Intn(8) {
	case 0:
		if f.Write(out[:1], out[1:]) != nil {
			return Close
		}
		return More
	case 1:
		if f.Write(out[:2], nil) != nil {
			return Close
		}
		out = out[2:]
	}
	return f.answer(string(out))
}

// inlineStressClient sends lines, some of them together, and returns how many
// answers came whole and in order before the end.
func inlineStressClient(t testing.TB, c *client, id, lines int, rnd *rand.Rand) (checked int) {
	var want []string // the answers' lines
	var wants []string
	read := func(left int) bool {
		for len(want) > left {
			var head string
			var n int
			if _, err := fmt.Fscanf(c.R, "%s %d\n", &head, &n); err != nil {
				return false
			}
			b := make([]byte, n)
			if _, err := io.ReadFull(c.R, b); err != nil {
				return false // cut by the end
			}
			if head != want[0] || string(b) != string(stressBody(wants[0], n)) {
				t.Errorf("got the answer %.100q, want %q, or its bytes are wrong", head, want[0])
				return false
			}
			checked++
			want, wants = want[1:], wants[1:]
		}
		return true
	}
	var out strings.Builder
	for i := range lines {
		line := fmt.Sprintf("%d.%d", id, i)
		body := ""
		if rnd.Intn(10) == 0 {
			body = strings.Repeat("b", 1+rnd.Intn(20))
			line += fmt.Sprintf(" %d", len(body))
		}
		want = append(want, strings.ReplaceAll(line, " ", "+")+body)
		wants = append(wants, line)
		out.WriteString(line + "\n" + body)
		if rnd.Intn(6) > 0 && i < lines-1 {
			continue
		}
		s := out.String()
		out.Reset()
		if rnd.Intn(3) == 0 {
			k := rnd.Intn(len(s))
			io.WriteString(c, s[:k])
			runtime.Gosched()
			s = s[k:]
		}
		if _, err := io.WriteString(c, s); err != nil {
			read(0)
			return checked
		}
		if rnd.Intn(3) > 0 && !read(max(rnd.Intn(10)-6, 0)) {
			return checked
		}
	}
	read(0)
	return checked
}
