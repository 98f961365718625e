package sys

import (
	"bytes"
	"os"
	"syscall"
	"testing"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// pair is two connected non-blocking sockets.
func pair(t *testing.T) (a, b int) {
	t.Helper()
	p, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Close(p[0]); Close(p[1]) })
	return p[0], p[1]
}

func TestRelay(t *testing.T) {
	source, from := pair(t)
	to, client := pair(t)
	var r Relay
	defer r.Close()
	if n, e := r.Take(from, 10); n != 0 || !Again(e) {
		t.Fatal("Take from a silent socket gave", n, e)
	}
	if r.has {
		t.Error("a pipe is held for a silent source")
	}
	want := bytes.Repeat([]byte("0123456789"), 10_000)
	n, _ := Write(source, want)
	want = want[:n]
	syscall.Shutdown(source, syscall.SHUT_WR)
	var got []byte
	room := make([]byte, 1000)
	for {
		n, e := r.Take(from, 1<<20)
		if e != 0 {
			t.Fatal("Take:", e)
		}
		if n != r.Held() {
			t.Fatalf("%d bytes were taken, %d are held", n, r.Held())
		}
		if n == 0 {
			break
		}
		for r.Held() > 0 {
			before := r.Held()
			if n, e := r.Give(to); n != before-r.Held() || e != 0 && !Again(e) {
				t.Fatal("Give gave", n, e)
			}
			for {
				n, e := Read(client, room)
				if e != 0 {
					break
				}
				got = append(got, room[:n]...)
			}
		}
	}
	if len(want) < 64<<10 || !bytes.Equal(got, want) {
		t.Errorf("of %d bytes %d came through, or others", len(want), len(got))
	}
}

// A pipe with bytes in it must not come to another relay.
func TestRelayPipes(t *testing.T) {
	source, from := pair(t)
	to, client := pair(t)
	expect := func(used, idle int) {
		t.Helper()
		if u, i := Pipes(); u != used || i != idle {
			t.Errorf("%d pipes are in use and %d idle, want %d and %d", u, i, used, idle)
		}
	}
	none := func() bool {
		used, idle := Pipes()
		return used+idle == 0
	}
	servertest.Eventually(t, "the pipes of other tests are closed", none)
	Write(source, []byte("lost"))
	var r Relay
	if n, e := r.Take(from, 4); n != 4 || e != 0 {
		t.Fatal("Take gave", n, e)
	}
	expect(1, 0)
	r.Close()
	expect(0, 0)
	for range 3 {
		Write(source, []byte("kept"))
		if n, e := r.Take(from, 4); n != 4 || e != 0 {
			t.Fatal("Take gave", n, e)
		}
		if n, e := r.Give(to); n != 4 || e != 0 {
			t.Fatal("Give gave", n, e)
		}
		expect(1, 0)
		r.Close()
		expect(0, 1)
		var b [8]byte
		if n, _ := Read(client, b[:]); string(b[:n]) != "kept" {
			t.Errorf("got %q", b[:n])
		}
	}
	r.Close() // again
	servertest.Eventually(t, "the idle pipe is closed", none)
}

func TestRelayBounds(t *testing.T) {
	source, from := pair(t)
	relays := make([]Relay, maxPipes())
	take := func(r *Relay) Errno {
		Write(source, []byte("x"))
		_, e := r.Take(from, 1)
		return e
	}
	for i := range relays {
		defer relays[i].Close()
		if e := take(&relays[i]); e != 0 {
			t.Fatalf("Take %d of %d: %v", i, len(relays), e)
		}
	}
	var more Relay
	defer more.Close()
	if e := take(&more); e != NoPipe {
		t.Error("one Take too many gave", e)
	}
	relays[0].Close()
	if e := take(&more); e != 0 {
		t.Error("Take of a pipe that has become free gave", e)
	}
}

func TestRelayOutOfDescriptors(t *testing.T) {
	source, from := pair(t)
	to, _ := pair(t)
	servertest.Eventually(t, "no pipe is left", func() bool {
		used, idle := Pipes()
		return used+idle == 0
	})
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	Write(source, []byte("x"))
	var r Relay
	defer r.Close()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	n, e := r.Take(from, 1)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if n != 0 || e != NoPipe {
		t.Error("Take without descriptors gave", n, e)
	}
	// The byte is still there.
	if n, e := r.Take(from, 1); n != 1 || e != 0 {
		t.Error("Take with descriptors gave", n, e)
	}
	if n, e := r.Give(to); n != 1 || e != 0 {
		t.Error("Give gave", n, e)
	}
}

// A socket that cannot be spliced from is distinguished from a source's own errors.
func TestRelayCannot(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	_, from := pair(t)
	var r Relay
	defer r.Close()
	if _, e := r.Take(int(dir.Fd()), 1); !CannotSplice(e) {
		t.Error("Take from a folder gave", e)
	}
	syscall.Shutdown(from, syscall.SHUT_RD)
	if n, e := r.Take(from, 1); n != 0 || e != 0 {
		t.Error("Take at the end gave", n, e)
	}
	for _, e := range []Errno{0, syscall.ECONNRESET, syscall.EAGAIN, NoPipe} {
		if CannotSplice(e) {
			t.Errorf("%q is no reason to give splice up", e)
		}
	}
}

func TestRelayAllocations(t *testing.T) {
	source, from := pair(t)
	to, client := pair(t)
	var b [8]byte
	var r Relay
	defer r.Close()
	if n := testing.AllocsPerRun(100, func() {
		Write(source, b[:])
		r.Take(from, 8)
		r.Give(to)
		Read(client, b[:])
		r.Take(from, 8)
	}); n != 0 {
		t.Errorf("%v allocations for each round", n)
	}
}
