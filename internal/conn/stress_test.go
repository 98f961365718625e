//go:build linux || darwin

package conn

import (
	"bytes"
	"fmt"
	"io"
	"math/rand"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// Many connections whose handlers and clients do anything at any time, until
// the server drains or kills them. The fake checks that there is one owner at
// a time; the clients check every answer that they get whole.
func TestOwnershipStress(t *testing.T) {
	t.Parallel()
	seed := time.Now().UnixNano()
	rounds := 6
	if testing.Short() {
		rounds = 1
	}
	for i := range rounds {
		stressRound(t, seed+int64(i))
	}
}

func stressRound(t *testing.T, seed int64) {
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	rnd := rand.New(rand.NewSource(seed))
	r := newRig(t, Limits{ReadStall: moment, WriteStall: 5 * moment / 2})
	const n = 60
	var fakes []*fake
	var clients sync.WaitGroup
	var served, checked atomic.Int64
	for i := range n {
		serveSeed, clientSeed := rnd.Int63(), rnd.Int63()
		f := &fake{first: 5 * moment / 2, partly: 5 * moment / 2, idle: 5 * moment / 2}
		random := rand.New(rand.NewSource(serveSeed)) // the owner's, as it should be
		switch i % 3 {
		case 0:
			f.quickly = func(line string) bool { return len(line)%2 == 0 }
		case 1:
			f.quick, f.whole = true, i%2 == 0
		}
		f.serve = func(f *fake, line string) Next {
			served.Add(1)
			return stressServe(f, line, random)
		}
		if rnd.Intn(8) == 0 {
			f.reply = func(line string) ([]byte, Next, bool) {
				return bytes.Repeat([]byte("no\n"), 1<<16), Linger, len(line)%7 == 0
			}
		}
		fd, nc := tcpPair(t)
		c := r.start(f, fd, nc)
		fakes = append(fakes, f)
		clients.Go(func() { checked.Add(stressClient(t, c, i, rand.New(rand.NewSource(clientSeed)))) })
	}
	// At a random moment the server ends.
	many := int64(rnd.Intn(400))
	for begin := time.Now(); served.Load() < many && time.Since(begin) < time.Second; {
		runtime.Gosched()
	}
	mail := Kill
	if rnd.Intn(2) == 0 {
		mail = Drain
	}
	r.loop.Do(func() { r.loop.Broadcast(mail) })
	clients.Wait()
	for i, f := range fakes {
		select {
		case <-f.closed:
		case <-time.After(servertest.Patience):
			t.Fatalf("connection %d did not end: state %b", i, f.state.Load())
		}
	}
	servertest.Eventually(t, "all places are free", func() bool { return r.shared.Gate.Open() == 0 })
	if testing.Verbose() {
		t.Logf("seed %d: %d served, %d answers checked", seed, served.Load(), checked.Load())
	}
}

// stressServe answers a line with "<line> <n>\n" and n bytes that are made from
// the line, after having done something else, or ends badly.
func stressServe(f *fake, line string, rnd *rand.Rand) Next {
	switch rnd.Intn(12) {
	case 0:
		time.Sleep(time.Duration(rnd.Intn(2000)) * time.Microsecond)
	case 1:
		for range rnd.Intn(100) {
			runtime.Gosched()
		}
	case 2:
		// More bytes, which may never come.
		if err := f.Fill(); err != nil && len(f.Buffered()) == 0 {
			return Close
		}
	case 3:
		// A second goroutine moves the deadline under a read.
		moved := make(chan bool)
		go func() {
			f.SetReadDeadline(time.Now().Add(time.Millisecond))
			f.WatchPeer()
			close(moved)
		}()
		f.Fill()
		<-moved
		f.SetReadDeadline(time.Time{})
	case 4:
		if rnd.Intn(4) == 0 {
			runtime.Goexit()
		}
	case 5:
		if rnd.Intn(4) == 0 {
			return stressHijack(f, rnd)
		}
	case 6:
		if rnd.Intn(4) == 0 {
			return []Next{Close, Linger, Reset}[rnd.Intn(3)]
		}
	}
	n := rnd.Intn(200)
	if rnd.Intn(10) == 0 {
		n = rnd.Intn(1 << 20)
	}
	head := fmt.Appendf(nil, "%s %d\n", line, n)
	if f.Write(head, stressBody(line, n)) != nil {
		return Close
	}
	return More
}

func stressBody(line string, n int) []byte {
	return bytes.Repeat([]byte(line+"|"), n/(len(line)+1)+1)[:n]
}

func stressHijack(f *fake, rnd *rand.Rand) Next {
	nc, _, err := f.Hijack()
	if err != nil {
		return Close
	}
	runtime.Gosched()
	nc.SetDeadline(time.Now().Add(time.Duration(rnd.Intn(5)) * time.Millisecond))
	io.WriteString(nc, "hijacked 0\n")
	nc.Read(make([]byte, 100))
	nc.Close()
	return Detached
}

// stressClient does anything until the connection ends, and returns how many
// answers it has checked.
func stressClient(t testing.TB, c *client, id int, rnd *rand.Rand) (checked int64) {
	defer c.Close()
	var want []string
	read := func() bool {
		for len(want) > 0 {
			var line string
			var n int
			if _, err := fmt.Fscanf(c.R, "%s %d\n", &line, &n); err != nil {
				return false
			}
			if line != want[0] {
				return false // hijacked, refused, or read by a Fill
			}
			b := make([]byte, n)
			if _, err := io.ReadFull(c.R, b); err != nil {
				return false
			}
			if !bytes.Equal(b, stressBody(line, n)) {
				t.Errorf("the answer to %s is wrong", line)
			}
			checked++
			want = want[1:]
		}
		return true
	}
	for i := range 40 {
		line := fmt.Sprintf("%d.%d", id, i)
		want = append(want, line)
		out := line + "\n"
		if rnd.Intn(4) == 0 {
			k := rnd.Intn(len(out))
			io.WriteString(c, out[:k])
			time.Sleep(time.Duration(rnd.Intn(500)) * time.Microsecond)
			out = out[k:]
		}
		if _, err := io.WriteString(c, out); err != nil {
			break
		}
		switch rnd.Intn(60) {
		case 0:
			c.Reset()
			return checked
		case 1:
			c.CloseWrite()
			read()
			return checked
		case 2:
			time.Sleep(time.Duration(rnd.Intn(100)) * time.Millisecond) // a stall
		}
		if rnd.Intn(3) > 0 && !read() {
			break
		}
	}
	read()
	return checked
}
