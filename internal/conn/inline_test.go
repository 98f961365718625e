//go:build linux || darwin

package conn

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/chert-http/chert/internal/sys"
)

// packets is pair where each write is read by itself.
func packets(t testing.TB) (int, net.Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET, 0)
	if err != nil {
		t.Skip("this system has no pairs of packet sockets")
	}
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
		syscall.SetNonblock(fd, true)
	}
	file := os.NewFile(uintptr(fds[1]), "client")
	defer file.Close()
	nc, err := net.FileConn(file)
	if err != nil {
		t.Fatal(err)
	}
	return fds[0], nc
}

// alive checks that the loop serves others.
func (r *rig) alive() {
	r.t.Helper()
	for _, quick := range []bool{true, false} {
		c := r.open(&fake{quick: quick, serve: last})
		c.send("alive\n")
		c.want("alive\n")
		c.Close()
	}
}

// A quick request is served on the loop and the connection given back.
func TestQuickOnLoop(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	var quick, slow atomic.Int64
	f := &fake{
		quickly: func(line string) bool { return line[0] == 'q' },
		serve: func(f *fake, line string) Verdict {
			switch o := f.Outcome(); {
			case o == RanInline && line[0] == 'q':
				quick.Add(1)
			case o == RanPooled && line[0] == 's':
				slow.Add(1)
			case o == Overstayed: // on a busy machine
			default:
				t.Errorf("%s has run as %d", line, o)
			}
			return last(f, line)
		},
	}
	c := r.open(f)
	for i := range 50 {
		line := fmt.Sprintf("%c%d\n", "qs"[i%2], i)
		c.send(line)
		c.want(line)
		eventually(t, "the loop owns it", func() bool { return f.state.Load()&owned == 0 })
	}
	if quick.Load() == 0 || slow.Load() != 25 {
		t.Errorf("%d ran on the loop, %d on a goroutine", quick.Load(), slow.Load())
	}
	c.closeWrite()
	c.ended()
	await(t, f.closed, "Closed")
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
		{"a partial one behind", "a\nb\nc", []string{"a\nb\n"}},
		{"as many as a batch", strings.Repeat("a\n", batch), []string{strings.Repeat("a\n", batch)}},
		{"a large one behind", "a\n" + big, []string{"a\n" + big}},
		{"large ones", big + "a\n", []string{big + "a\n"}},
	} {
		for _, whole := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, whole %v", tt.name, whole), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, Limits{})
				// One that overstays on a busy machine may cost a write more.
				var overstayed atomic.Bool
				f := &fake{quick: true, whole: whole, serve: func(f *fake, line string) Verdict {
					v := last(f, line)
					if f.Outcome() != RanInline {
						overstayed.Store(true)
					}
					return v
				}}
				fd, nc := packets(t)
				c := r.start(f, fd, nc)
				for good, tries := 0, 0; good < 3; tries++ {
					if tries == 50 {
						t.Fatal("in every round one overstays")
					}
					if overstayed.Swap(false) {
						fd, nc := packets(t)
						c = r.start(f, fd, nc)
					}
					c.send(tt.in)
					for _, w := range tt.out {
						b := make([]byte, 1<<20)
						n, err := c.Read(b)
						if string(b[:n]) == w {
							continue
						}
						eventually(t, "all are served", func() bool {
							return int(f.runs.Load())%strings.Count(tt.in, "\n") == 0 && f.state.Load()&owned == 0
						})
						if !overstayed.Load() {
							t.Fatalf("got %.100q (%d, %v), want %.100q (%d)", b[:n], n, err, w, len(w))
						}
						break
					}
					if !overstayed.Load() {
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
					serve: func(f *fake, line string) Verdict {
						v := last(f, line+pad)
						if h := f.held.Load(); h != nil {
							h.mu.Lock()
							if h.b != nil && len(h.b.B) > holdMax {
								t.Errorf("%d bytes are held", len(h.b.B))
							}
							h.mu.Unlock()
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
				c.send(in.String())
				if size > 10_000 {
					// Nobody reads: the handler waits for room and leaves the loop.
					f.sleeps(waitWrite)
					r.alive()
				}
				c.want(out.String())
				c.send("x\n")
				c.want("x" + pad + "\n")
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
		b func(f *fake, release <-chan bool) Verdict
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
		{name: "waits", b: func(f *fake, release <-chan bool) Verdict {
			<-release
			return last(f, "b")
		}, want: "b\n"},
		{name: "waits, not quick", b: func(f *fake, release <-chan bool) Verdict {
			<-release
			return last(f, "b")
		}, want: "b\n", slow: true},
		{name: "computes", b: func(f *fake, release <-chan bool) Verdict {
			for computing := true; computing; {
				select {
				case <-release:
					computing = false
				default:
					runtime.KeepAlive(f) // anything but waiting
				}
			}
			if f.Outcome() != Overstayed {
				t.Errorf("the outcome is %d", f.Outcome())
			}
			return last(f, "b")
		}, want: "b\n"},
		{name: "waits for a body", b: func(f *fake, release <-chan bool) Verdict {
			b := make([]byte, 10)
			n, err := f.Read(b)
			if err != nil || f.Outcome() != Waited {
				t.Errorf("read %q, %v; outcome %d", b[:n], err, f.Outcome())
			}
			return last(f, "b:"+string(b[:n]))
		}, then: "body", want: "b:body\n"},
		{name: "fills", b: func(f *fake, release <-chan bool) Verdict {
			err := f.Fill()
			b := string(f.Buffered())
			if err != nil {
				t.Error(err)
			}
			f.Discard(len(b))
			return last(f, "b:"+b)
		}, then: "body", want: "b:body\n"},
		{name: "writes a part", b: func(f *fake, release <-chan bool) Verdict {
			f.Write2([]byte("b"), []byte("1"))
			<-release
			return last(f, "2")
		}, want: "b12\n"},
		{name: "sends a file", b: func(f *fake, release <-chan bool) Verdict {
			_, ok, err := f.SendFile(file, 0, 5)
			if err != nil {
				t.Error(err)
			}
			if !ok {
				f.Write2([]byte("file\n"), nil)
			}
			<-release
			return last(f, "b")
		}, want: "file\nb\n"},
		{name: "hijacks", b: func(f *fake, release <-chan bool) Verdict {
			f.leave()
			defer f.owner.Store(1)
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
		{name: "ends its goroutine", b: func(f *fake, release <-chan bool) Verdict {
			runtime.Goexit()
			return More
		}, ends: true},
		{name: "waits and ends its goroutine", b: func(f *fake, release <-chan bool) Verdict {
			<-release
			runtime.Goexit()
			return More
		}, ends: true},
		{name: "closes", b: func(f *fake, release <-chan bool) Verdict { return Close }, ends: true},
		{name: "lingers", b: func(f *fake, release <-chan bool) Verdict { return Linger }, ends: true},
		{name: "answers and closes", b: func(f *fake, release <-chan bool) Verdict {
			last(f, "b")
			return Close
		}, want: "b\n", ends: true},
		{name: "waits and closes", b: func(f *fake, release <-chan bool) Verdict {
			<-release
			last(f, "b")
			return Close
		}, want: "b\n", ends: true},
		{name: "says nothing", b: func(f *fake, release <-chan bool) Verdict { return More }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Limits{})
			release := make(chan bool)
			f := &fake{
				quickly: func(line string) bool { return !tt.slow || line != "b" },
				serve: func(f *fake, line string) Verdict {
					if line == "b" {
						return tt.b(f, release)
					}
					return last(f, line)
				},
			}
			c := r.open(f)
			c.send("a\nb\n")
			c.want("a\n")
			r.alive()
			if tt.then != "" {
				c.send(tt.then)
			}
			close(release)
			c.want(tt.want)
			if tt.ends {
				c.ended()
				c.Close()
				await(t, f.closed, "Closed")
				return
			}
			c.send("c\nd\n")
			c.want("c\nd\n")
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
	f := &fake{quick: true, serve: func(f *fake, line string) Verdict {
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
	c.send("a\nb\n")
	c.want(answer + "\n")
}

// A held answer does not outlive a connection that is killed; the buffers are
// counted at the end.
func TestKillWhileHeld(t *testing.T) {
	t.Parallel()
	for _, wait := range []bool{true, false} {
		r := newRig(t, Limits{})
		f := &fake{quick: true, serve: func(f *fake, line string) Verdict {
			if line == "b" {
				f.loop.Post(f.place, Kill)
				if wait {
					await(f.t, f.gone, "PeerGone")
				}
			}
			return last(f, line)
		}}
		c := r.open(f)
		c.send("a\nb\nc\n")
		await(t, f.closed, "Closed")
		c.Close()
		r.alive()
	}
}

// Goexit on the loop costs the connection and no more.
func TestGoexitOnLoop(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	for range 10 {
		f := &fake{quick: true, whole: true, serve: func(f *fake, line string) Verdict {
			runtime.Goexit()
			return More
		}}
		c := r.open(f)
		c.send("x\ny\n")
		c.ended()
		c.Close()
		await(t, f.closed, "Closed")
		if f.runs.Load() != 1 {
			t.Errorf("served %d times", f.runs.Load())
		}
		r.alive()
	}
}

// Drain and Kill while a handler that began on the loop waits.
func TestEndWhileFormerDriver(t *testing.T) {
	t.Parallel()
	for _, mail := range []int{Drain, CloseIdle, Kill} {
		r := newRig(t, Limits{})
		entered, release := make(chan bool, 2), make(chan bool)
		f := &fake{quick: true, serve: func(f *fake, line string) Verdict {
			entered <- true
			<-release
			return last(f, line)
		}}
		c := r.open(f)
		c.send("a\n")
		await(t, entered, "Serve")
		r.loop.Post(f.place, mail)
		r.on(func() {})
		close(release)
		if mail != Kill {
			c.want("a\n")
		}
		if mail == CloseIdle {
			c.send("b\n")
			c.want("b\n")
			c.Close()
		}
		c.ended()
		c.Close()
		await(t, f.closed, "Closed")
	}
}

// The bytes of a whole request stay until Serve has returned, from wherever
// they were fed, also when the loop is lost and reads on for others.
func TestWholeStays(t *testing.T) {
	t.Parallel()
	const line = "a line that is whole"
	for _, feed := range []struct {
		name  string
		parts []string
	}{
		{"at once", []string{line + "\n"}},
		{"with more behind", []string{line + "\nnext"}},
		{"two", []string{line + "\n" + line + "\n"}},
		{"three and a half", []string{line + "\n" + line + "\n" + line + "\na l"}},
		{"in two", []string{line[:5], line[5:] + "\n"}},
		{"in two, with more", []string{line[:5], line[5:] + "\nnext"}},
		{"byte by byte", strings.Split(line+"\n"+line+"\n", "")},
	} {
		for _, lose := range []string{"", "wait", "fill"} {
			t.Run(feed.name+" "+lose, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, Limits{})
				entered, release := make(chan bool, 10), make(chan bool)
				f := &fake{quick: true, whole: true}
				f.serve = func(f *fake, l string) Verdict {
					check := func(when string) {
						if string(f.raw) != line+"\n" {
							t.Errorf("%s the bytes are %q", when, f.raw)
						}
					}
					check("at first")
					entered <- true
					if lose == "wait" {
						<-release
					}
					check("after waiting")
					if err := last(f, l); err != More {
						return err
					}
					check("after writing")
					return More
				}
				c := r.open(f)
				for i, p := range feed.parts {
					c.send(p)
					if i < len(feed.parts)-1 && len(entered) == 0 {
						r.taken(f, len(strings.Join(feed.parts[:i+1], "")))
					}
				}
				await(t, entered, "Serve")
				// Others overwrite what they can.
				for range 3 {
					o := r.open(&fake{quick: true, serve: last})
					junk := strings.Repeat("#", 30_000) + "\n"
					o.send(junk)
					o.want(junk)
				}
				close(release)
				n := strings.Count(strings.Join(feed.parts, ""), "\n")
				for range n {
					c.want(line + "\n")
				}
				eventually(t, "the loop owns it", func() bool { return f.state.Load()&owned == 0 })
				rest := strings.Join(feed.parts, "")
				rest = rest[strings.LastIndexByte(rest, '\n')+1:]
				r.on(func() {
					got := ""
					if f.in != nil {
						got = string(f.in.B)
					}
					if got != rest || f.whole && f.Conn.whole != 0 {
						t.Errorf("left %q, %d whole, want %q", got, f.Conn.whole, rest)
					}
				})
			})
		}
	}
}

// Unread makes the end of a whole request its body, in front of what came
// behind it.
func TestUnread(t *testing.T) {
	t.Parallel()
	for _, feed := range []struct {
		name  string
		parts []string
	}{
		{"at once", []string{"head:body\n"}},
		{"with more behind", []string{"head:body\nnext\n"}},
		{"behind another", []string{"first:\nhead:body\nnext\n"}},
		{"byte by byte", strings.Split("head:body\n", "")},
		{"byte by byte, with more", append(strings.Split("head:body", ""), "\nnext\n")},
	} {
		for _, how := range []string{"inline", "run again", "run again, quick", "hijack", "lost", "nothing"} {
			t.Run(feed.name+", "+how, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, Limits{})
				rest := make(chan string, 1)
				begun, release := make(chan bool, 1), make(chan bool)
				again, slow := false, false
				f := &fake{whole: true, quickly: func(string) bool { return !slow }}
				f.serve = func(f *fake, l string) Verdict {
					switch {
					case again:
						again = false
						slow = false
					case !strings.HasPrefix(l, "head:"):
						return last(f, l)
					default:
						begun <- true
						if how == "lost" {
							<-release
						}
						if how == "nothing" {
							f.Unread(f.raw[len(f.raw):])
							return last(f, "head:body")
						}
						f.Unread(f.raw[len("head:"):])
						if strings.HasPrefix(how, "run again") {
							again = true
							slow = how == "run again"
							return Run
						}
					}
					if how == "hijack" {
						f.leave()
						nc, b, err := f.Hijack()
						f.owner.Store(1)
						if err != nil {
							t.Error(err)
							return Close
						}
						defer nc.Close()
						rest <- string(b)
						return Detached
					}
					b := make([]byte, len("body\n"))
					if _, err := io.ReadFull(readerOf{f}, b); string(b) != "body\n" {
						t.Errorf("read %q, %v", b, err)
					}
					return last(f, "head:body")
				}
				c := r.open(f)
				for i, p := range feed.parts {
					c.send(p)
					if i < len(feed.parts)-1 {
						r.taken(f, len(strings.Join(feed.parts[:i+1], "")))
					}
				}
				await(t, begun, "Serve")
				r.on(func() {})
				close(release)
				all := strings.Join(feed.parts, "")
				if how == "hijack" {
					if want := all[strings.Index(all, "body"):]; await(t, rest, "the hijack") != want {
						t.Errorf("the rest is not %q", want)
					}
					return
				}
				c.want(all)
				c.send("more\n")
				c.want("more\n")
			})
		}
	}
}

// readerOf is a fake as io.Reader.
type readerOf struct{ f *fake }

func (r readerOf) Read(p []byte) (int, error) { return r.f.Read(p) }

// taken waits until f has read n bytes in all, or serves a request, so that
// the next bytes come by themselves.
func (r *rig) taken(f *fake, n int) {
	r.t.Helper()
	eventually(r.t, "the bytes have been read", func() (ok bool) {
		r.on(func() {
			ok = f.runs.Load() > 0 || f.state.Load()&owned != 0 || f.in != nil && len(f.in.B) == n
		})
		return ok
	})
}

// Now does not stand still when the loop has been lost.
func TestNowAfterLoss(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	f := &fake{quick: true, serve: func(f *fake, line string) Verdict {
		began := sys.Nanotime()
		for f.Outcome() != Overstayed {
			runtime.Gosched()
		}
		if f.Now() < began {
			t.Errorf("Now is %d ns before Serve began", began-f.Now())
		}
		return last(f, line)
	}}
	c := r.open(f)
	c.send("a\n")
	c.want("a\n")
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
		clients = append(clients, r.open(&fake{quick: true, serve: func(f *fake, line string) Verdict {
			inside.Done()
			inside.Wait()
			return last(f, line)
		}}))
	}
	for _, c := range clients {
		c.send("x\n")
	}
	for _, c := range clients {
		c.want("x\n")
	}
}
