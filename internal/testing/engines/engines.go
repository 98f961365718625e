package engines

import (
	"runtime"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/sys"
)

// NetHTTP stands for net/http in place of an engine: a test that runs on it too
// expects net/http's behaviour.
const NetHTTP chert.Engine = 255

// Each runs f once for each engine that this system has.
func Each(t *testing.T, f func(t *testing.T, e chert.Engine)) {
	t.Helper()
	run := func(name string, e chert.Engine) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, e)
		})
	}
	if sys.HavePoller {
		run("loops", chert.EngineLoops)
	}
	run("goroutines", chert.EngineGoroutines)
}

// Alike runs f once for each engine and once on net/http itself.
func Alike(t *testing.T, f func(t *testing.T, e chert.Engine)) {
	t.Helper()
	Each(t, f)
	t.Run("nethttp", func(t *testing.T) {
		t.Parallel()
		f(t, NetHTTP)
	})
}

// EachPlacement runs f for both engines and all placements.
func EachPlacement(t *testing.T, f func(t *testing.T, fresh func() *chert.Server)) {
	t.Helper()
	t.Parallel()
	Placements(func(name string, e chert.Engine, p chert.Placement) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, func() *chert.Server { return &chert.Server{Engine: e, Placement: p} })
		})
	})
}

// Placements calls run for goroutines, and for loops with each placement where there are loops.
func Placements(run func(name string, e chert.Engine, p chert.Placement)) {
	run("goroutines", chert.EngineGoroutines, chert.PlacementAdaptive)
	if sys.HavePoller {
		run("adaptive", chert.EngineLoops, chert.PlacementAdaptive)
		run("inline", chert.EngineLoops, chert.PlacementInline)
		run("pooled", chert.EngineLoops, chert.PlacementPooled)
	}
}

// OnDriver reports whether the caller runs on a loop's driver.
func OnDriver() bool {
	var pcs [128]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, "loop.(*Loop).drive") {
			return true
		}
		if !more {
			return false
		}
	}
}
