//go:build linux || darwin

package conn

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// A quick request is served on the loop and the connection given back.
func TestQuickOnLoop(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	var quick, slow atomic.Int64
	f := &fake{
		quickly: func(line string) bool { return line[0] == 'q' },
		serve: func(f *fake, line string) Next {
			switch {
			case line[0] == 's' && !f.OnLoop():
				slow.Add(1)
			case line[0] == 'q' && f.OnLoop():
				quick.Add(1)
			case line[0] == 'q': // late, on a busy machine
			default:
				t.Errorf("%s: on the loop %v", line, f.OnLoop())
			}
			return last(f, line)
		},
	}
	c := r.open(f)
	for i := range 50 {
		line := fmt.Sprintf("%c%d\n", "qs"[i%2], i)
		c.Send(line)
		c.Want(line)
		r.loopOwns(f)
	}
	if quick.Load() == 0 || slow.Load() != 25 {
		t.Errorf("%d ran on the loop, %d on a goroutine", quick.Load(), slow.Load())
	}
	c.CloseWrite()
	c.Ended()
	servertest.Await(t, f.closed, "Closed")
}

// The answers of pipelined quick requests leave together.
func TestOneWrite(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 30<<10) + "\n"
	for _, tt := range []struct {
		name, in string
		out      []string // a write each
	}{
		{"one", "a\n", []string{"a\n"}},
		{"three", "a\nb\nc\n", []string{"a\nb\nc\n"}},
		{"a partial one after them", "a\nb\nc", []string{"a\nb\n"}},
		{"as many as a batch", strings.Repeat("a\n", batch), []string{strings.Repeat("a\n", batch)}},
		{"a large one at the end", "a\n" + big, []string{"a\n" + big}},
		{"a large one first", big + "a\n", []string{big, "a\n"}},
	} {
		for _, whole := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, whole %v", tt.name, whole), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, Limits{})
				f := &fake{quick: true, whole: whole, serve: last}
				var c *client
				for good, tries := 0, 0; good < 3; tries++ {
					if tries == 50 {
						t.Fatal("in every round one overstays")
					}
					if tries == 0 || f.lates.Load() > 0 {
						// One that overstays, on a busy machine, may cost a write more.
						f = &fake{quick: true, whole: whole, serve: last}
						fd, nc := servertest.Packets(t)
						c = r.start(f, fd, nc)
					}
					c.Send(tt.in)
					for _, w := range tt.out {
						b := make([]byte, 1<<20)
						n, err := c.Read(b)
						if string(b[:n]) == w {
							continue
						}
						if r.loopOwns(f); f.lates.Load() == 0 {
							t.Fatalf("got %.100q (%d, %v), want %.100q (%d)", b[:n], n, err, w, len(w))
						}
						break
					}
					if r.loopOwns(f); f.lates.Load() == 0 {
						good++
					}
					if strings.HasSuffix(tt.in, "c") {
						break
					}
				}
			})
		}
	}
}

// More pipelined requests than a batch, more bytes than may be held, and what
// is quick mixed with what is not: the answers come whole and in order.
func TestPipelineOrder(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		for _, size := range []int{0, 100, 3000, 50_000} {
			t.Run(fmt.Sprintf("%d bytes, whole %v", size, whole), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, Limits{})
				pad := strings.Repeat("-", size)
				f := &fake{
					whole:   whole,
					quickly: func(line string) bool { return line[len(line)-1] != '7' },
					serve: func(f *fake, line string) Next {
						v := last(f, line+pad)
						if q := f.queue.Load(); q != nil {
							if n, _ := q.Unsent(); n > int64(outbox.HighWater+len(line)+len(pad)+1) {
								t.Errorf("%d bytes are held", n)
							}
						}
						return v
					},
				}
				c := r.open(f)
				const n = 300
				var in, out strings.Builder
				for i := range n {
					fmt.Fprintf(&in, "%d\n", i)
					fmt.Fprintf(&out, "%d%s\n", i, pad)
				}
				c.Send(in.String())
				if size > 10_000 {
					// The client does not read: the lines wait with the answers.
					r.stuck(f)
					r.alive()
				}
				c.Want(out.String())
				c.Send("x\n")
				c.Want("x" + pad + "\n")
			})
		}
	}
}

// The answer to a is held when b begins. Whatever b does, the peer gets the
// first answer before b ends, once.
func TestHeldIsWritten(t *testing.T) {
	t.Parallel()
	type test struct {
		name string
		// b is the second's Serve. It may wait for release, which comes when
		// the first answer has.
		b func(f *fake, release <-chan bool) Next
		// then is what the client sends at the release, and gets.
		then, want string
		slow, ends bool
	}
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	file.WriteString("file\n")
	for _, tt := range []test{
		{name: "waits", b: func(f *fake, release <-chan bool) Next {
			<-release
			return last(f, "b")
		}, want: "b\n"},
		{name: "waits, not quick", b: func(f *fake, release <-chan bool) Next {
			<-release
			return last(f, "b")
		}, want: "b\n", slow: true},
		{name: "computes", b: func(f *fake, release <-chan bool) Next {
			for computing := true; computing; {
				select {
				case <-release:
					computing = false
				default:
					runtime.KeepAlive(f) // anything but waiting
				}
			}
			if f.OnLoop() || f.lates.Load() == 0 {
				t.Errorf("inline %v, late %d times", f.OnLoop(), f.lates.Load())
			}
			return last(f, "b")
		}, want: "b\n"},
		{name: "waits for a body", b: func(f *fake, release <-chan bool) Next {
			b := make([]byte, 10)
			n, err := f.Read(b)
			// On a busy machine the watch may write the first answer, and the body be there, before the read.
			if err != nil || !f.waited() && f.lates.Load() == 0 {
				t.Errorf("read %q, %v; waited %v", b[:n], err, f.waited())
			}
			return last(f, "b:"+string(b[:n]))
		}, then: "body", want: "b:body\n"},
		{name: "fills", b: func(f *fake, release <-chan bool) Next {
			err := f.Fill()
			b := string(f.Buffered())
			if err != nil {
				t.Error(err)
			}
			f.Discard(len(b))
			return last(f, "b:"+b)
		}, then: "body", want: "b:body\n"},
		{name: "writes a part", b: func(f *fake, release <-chan bool) Next {
			f.Write([]byte("b"), []byte("1"))
			<-release
			return last(f, "2")
		}, want: "b12\n"},
		{name: "sends a file", b: func(f *fake, release <-chan bool) Next {
			_, ok, err := f.SendFile(file, 0, 5)
			if err != nil {
				t.Error(err)
			}
			if !ok {
				f.Write([]byte("file\n"), nil)
			}
			<-release
			return last(f, "b")
		}, want: "file\nb\n"},
		{name: "hijacks", b: func(f *fake, release <-chan bool) Next {
			nc, _, err := f.Hijack()
			if err != nil {
				t.Error(err)
				return Close
			}
			defer nc.Close()
			<-release
			io.WriteString(nc, "hijacked\n")
			return Detached
		}, want: "hijacked\n", ends: true},
		{name: "ends its goroutine", b: func(f *fake, release <-chan bool) Next {
			runtime.Goexit()
			return More
		}, ends: true},
		{name: "waits and ends its goroutine", b: func(f *fake, release <-chan bool) Next {
			<-release
			runtime.Goexit()
			return More
		}, ends: true},
		{name: "closes", b: func(f *fake, release <-chan bool) Next { return Close }, ends: true},
		{name: "lingers", b: func(f *fake, release <-chan bool) Next { return Linger }, ends: true},
		{name: "answers and closes", b: func(f *fake, release <-chan bool) Next {
			last(f, "b")
			return Close
		}, want: "b\n", ends: true},
		{name: "waits and closes", b: func(f *fake, release <-chan bool) Next {
			<-release
			last(f, "b")
			return Close
		}, want: "b\n", ends: true},
		{name: "says nothing", b: func(f *fake, release <-chan bool) Next { return More }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Limits{})
			release := make(chan bool)
			f := &fake{
				quickly: func(line string) bool { return !tt.slow || line != "b" },
				serve: func(f *fake, line string) Next {
					if line == "b" {
						return tt.b(f, release)
					}
					return last(f, line)
				},
			}
			c := r.open(f)
			c.Send("a\nb\n")
			c.Want("a\n")
			r.alive()
			if tt.then != "" {
				c.Send(tt.then)
			}
			close(release)
			c.Want(tt.want)
			if tt.ends {
				c.Ended()
				c.Close()
				servertest.Await(t, f.closed, "Closed")
				return
			}
			c.Send("c\nd\n")
			c.Want("c\nd\n")
		})
	}
}

// What Lost could not write is written when the peer makes room, although the
// handler still waits.
func TestHeldIsWrittenInParts(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	release := make(chan bool)
	answer := strings.Repeat("x", 60_000)
	f := &fake{quick: true, serve: func(f *fake, line string) Next {
		if line == "b" {
			<-release
			return last(f, line)
		}
		return last(f, answer)
	}}
	fd, nc := pair(t)
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_SNDBUF, 4096); err != nil {
		t.Fatal(err)
	}
	c := r.start(f, fd, nc)
	defer close(release)
	c.Send("a\nb\n")
	c.Want(answer + "\n")
}

// A held answer does not outlive a connection that is killed; the buffers are
// counted at the end.
func TestKillWhileHeld(t *testing.T) {
	t.Parallel()
	for _, wait := range []bool{true, false} {
		r := newRig(t, Limits{})
		f := &fake{quick: true, serve: func(f *fake, line string) Next {
			if line == "b" {
				f.loop.Post(f.handle, Kill)
				if wait {
					servertest.Await(f.t, f.gone, "PeerGone")
				}
			}
			return last(f, line)
		}}
		c := r.open(f)
		c.Send("a\nb\nc\n")
		servertest.Await(t, f.closed, "Closed")
		c.Close()
		r.alive()
	}
}

// The bytes that a handler is given where they lie stay until it returns, from
// wherever they were read, also when the loop is lost and reads on for others.
// What came after them is served next.
func TestWholeStays(t *testing.T) {
	t.Parallel()
	const line = "a line that is whole"
	for _, feed := range []struct {
		name  string
		parts []string
	}{
		{"at once", []string{line + "\n"}},
		{"with more after it", []string{line + "\nnext"}},
		{"two", []string{line + "\n" + line + "\n"}},
		{"three and a half", []string{line + "\n" + line + "\n" + line + "\na l"}},
		{"in two", []string{line[:5], line[5:] + "\n"}},
		{"in two, with more", []string{line[:5], line[5:] + "\nnext"}},
		{"byte by byte", strings.Split(line+"\n"+line+"\n", "")},
	} {
		for _, lose := range []string{"", "wait", "compute", "write"} {
			t.Run(feed.name+" "+lose, func(t *testing.T) {
				t.Parallel()
				testWholeStays(t, line, feed.parts, lose)
			})
		}
	}
}

func testWholeStays(t *testing.T, line string, parts []string, lose string) {
	r := newRig(t, Limits{})
	entered, release := make(chan bool, 10), make(chan bool)
	f := &fake{quick: true, whole: true}
	f.serve = func(f *fake, l string) Next {
		check := func(when string) {
			if string(f.raw) != line+"\n" {
				t.Errorf("%s the bytes are %q", when, f.raw)
			}
		}
		check("at first")
		entered <- true
		switch lose {
		case "wait":
			<-release
		case "compute":
			for f.OnLoop() || f.lates.Load() == 0 {
				runtime.Gosched()
			}
			<-release
		case "write":
			f.Yield()
			<-release
			f.Write([]byte("written: "), nil)
		}
		check("after waiting")
		if next := last(f, l); next != More {
			return next
		}
		check("after writing")
		return More
	}
	c := r.open(f)
	for i, p := range parts {
		c.Send(p)
		if i < len(parts)-1 && len(entered) == 0 {
			r.taken(f, len(strings.Join(parts[:i+1], "")))
		}
	}
	servertest.Await(t, entered, "Serve")
	// Others overwrite what they can.
	for range 3 {
		o := r.open(&fake{quick: true, serve: last})
		junk := strings.Repeat("#", 30_000) + "\n"
		o.Send(junk)
		o.Want(junk)
	}
	close(release)
	all := strings.Join(parts, "")
	for range strings.Count(all, "\n") {
		if lose == "write" {
			c.Want("written: ")
		}
		c.Want(line + "\n")
	}
	r.loopOwns(f)
	rest := all[strings.LastIndexByte(all, '\n')+1:]
	r.on(func() {
		if got := string(f.Buffered()); got != rest || f.borrowed {
			t.Errorf("left %q, borrowed %v, want %q", got, f.borrowed, rest)
		}
	})
}

// A request whose first line alone is given to the handler leaves its body, and
// what came after that, to be read by user code: on the loop, on a goroutine,
// after the loop was lost, or by the owner of a hijacked connection.
func TestBodyAfterLine(t *testing.T) {
	t.Parallel()
	for _, feed := range []struct {
		name  string
		parts []string
	}{
		{"at once", []string{"head\nbody\n"}},
		{"with more after it", []string{"head\nbody\nnext\n"}},
		{"after another", []string{"first\nhead\nbody\nnext\n"}},
		{"byte by byte", strings.Split("head\nbody\n", "")},
		{"byte by byte, with more", append(strings.Split("head\nbody", ""), "\nnext\n")},
	} {
		for _, how := range []string{"inline", "pooled", "hijack", "lost"} {
			t.Run(feed.name+", "+how, func(t *testing.T) {
				t.Parallel()
				testBodyAfterLine(t, feed.parts, how)
			})
		}
	}
}

func testBodyAfterLine(t *testing.T, parts []string, how string) {
	r := newRig(t, Limits{})
	rest := make(chan string, 1)
	begun, release := make(chan bool, 1), make(chan bool)
	f := &fake{quickly: func(line string) bool { return line != "head" || how != "pooled" }}
	f.serve = func(f *fake, line string) Next {
		if line != "head" {
			return last(f, line)
		}
		begun <- true
		switch how {
		case "lost":
			f.Yield()
			<-release
		case "hijack":
			nc, b, err := f.Hijack()
			if err != nil {
				t.Error(err)
				return Close
			}
			defer nc.Close()
			for !strings.HasSuffix(string(b), "body\n") && !strings.HasSuffix(string(b), "next\n") {
				p := make([]byte, 100)
				n, err := nc.Read(p)
				if b = append(b, p[:n]...); err != nil {
					t.Error(err)
					break
				}
			}
			rest <- string(b)
			return Detached
		}
		b := make([]byte, len("body\n"))
		if _, err := io.ReadFull(readerOf{f}, b); string(b) != "body\n" {
			t.Errorf("read %q, %v", b, err)
		}
		return last(f, "head\nbody")
	}
	c := r.open(f)
	for i, p := range parts {
		c.Send(p)
		if i < len(parts)-1 {
			r.taken(f, len(strings.Join(parts[:i+1], "")))
		}
	}
	servertest.Await(t, begun, "Serve")
	r.on(func() {})
	close(release)
	all := strings.Join(parts, "")
	if how == "hijack" {
		if got, want := servertest.Await(t, rest, "the hijack"), all[strings.Index(all, "body"):]; got != want && got != "body\n" {
			t.Errorf("the rest is %q, want %q", got, want)
		}
		return
	}
	c.Want(all)
	c.Send("more\n")
	c.Want("more\n")
}

// readerOf is a fake as io.Reader.
type readerOf struct{ f *fake }

func (r readerOf) Read(p []byte) (int, error) { return r.f.Read(p) }

// Now does not stand still when the loop has been lost.
func TestNowAfterLoss(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	var began atomic.Int64
	f := &fake{quick: true, serve: func(f *fake, line string) Next {
		if line == "a" {
			began.Store(sys.Nanotime())
			for f.OnLoop() {
				runtime.Gosched()
			}
		}
		return last(f, line)
	}}
	// Between the two, as the session of the second asks.
	f.fed = func(f *fake, line string) {
		if now := f.Now(); line == "b" && now < began.Load() {
			t.Errorf("Now is %d ns before the user code began", began.Load()-now)
		}
	}
	c := r.open(f)
	c.Send("a\nb\n")
	c.Want("a\nb\n")
}

// Many connections whose quick handlers wait all at the same time on one loop.
func TestManyWaitOnLoop(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	const n = 20
	var inside sync.WaitGroup
	inside.Add(n)
	var clients []*client
	for range n {
		clients = append(clients, r.open(&fake{quick: true, serve: func(f *fake, line string) Next {
			inside.Done()
			inside.Wait()
			return last(f, line)
		}}))
	}
	for _, c := range clients {
		c.Send("x\n")
	}
	for _, c := range clients {
		c.Want("x\n")
	}
}
