package exec

import (
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// run calls f on a goroutine of its own, which it may end.
func run(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func TestCall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		f                func()
		returned, exited bool
		panicked         any // that is to be reported
	}{
		{"returns", func() {}, true, false, nil},
		{"panics", func() { panic("p") }, false, false, "p"},
		{"aborts", func() { panic(http.ErrAbortHandler) }, false, false, nil},
		{"ends its goroutine", runtime.Goexit, false, true, nil},
		{"ends its goroutine far below", func() { deep(200, func() { deep(200, runtime.Goexit) }) }, false, true, nil},
		{"panics far below while it ends", func() { defer deep(200, func() { panic("q") }); runtime.Goexit() }, false, true, "q"},
		{"ends its goroutine and panics", func() { defer panic("q"); runtime.Goexit() }, false, true, "q"},
	} {
		returned, ends, after := false, 0, false
		run(func() {
			returned = Call(c.f, func(e End) {
				ends++
				if v, ok := e.Panic(); e.Exited() != c.exited || ok != (c.panicked != nil) || ok && v != c.panicked {
					t.Errorf("%s: exited %v, panic %v %v", c.name, e.Exited(), v, ok)
				}
			})
			after = true
		})
		if returned != c.returned || (ends == 0) != c.returned || after == c.exited {
			t.Errorf("%s: returned %v, ended %d times, went on %v", c.name, returned, ends, after)
		}
	}
}

// TestStack: the stack is the panic's.
func TestStack(t *testing.T) {
	t.Parallel()
	Call(func() { throws() }, func(e End) {
		if s := string(Stack()); !strings.Contains(s, "throws") {
			t.Errorf("stack without the panic's:\n%s", s)
		}
	})
}

func deep(n int, f func()) {
	if n == 0 {
		f()
		return
	}
	deep(n-1, f)
}

//go:noinline
func throws() { panic("p") }

func TestFinish(t *testing.T) {
	t.Parallel()
	returned := false
	Finish(func() {}, func(r bool) { returned = r })
	if !returned {
		t.Error("not returned")
	}
	Call(func() {
		Finish(func() { panic("p") }, func(r bool) { returned = r })
	}, func(e End) {
		if v, _ := e.Panic(); v != "p" || returned {
			t.Errorf("panic %v, returned %v", v, returned)
		}
	})
}

func TestCallAllocatesNothing(t *testing.T) {
	n := 0
	if a := testing.AllocsPerRun(100, func() {
		Call(func() { n++ }, func(End) { n-- })
		Finish(func() { n++ }, func(bool) { n-- })
	}); a != 0 {
		t.Errorf("%v allocations", a)
	}
}

func BenchmarkCall(b *testing.B) {
	n := 0
	for b.Loop() {
		Call(func() { n++ }, func(End) { n-- })
	}
}
