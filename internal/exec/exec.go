package exec

import (
	"log/slog"
	"net/http"
	"runtime"
)

// An End is how user code has ended without returning: by a panic, by runtime.Goexit, or
// by both.
type End struct {
	v      any // of a panic; nil if there was none
	exited bool
}

// Exited reports whether the code ends its goroutine (runtime.Goexit): nothing runs
// on it after the function that was given the End.
func (e End) Exited() bool { return e.exited }

// Panic returns the value of a panic that is to be reported. ok is false if there was
// none, and for http.ErrAbortHandler, which asks for silence.
func (e End) Panic() (v any, ok bool) { return e.v, e.v != nil && e.v != http.ErrAbortHandler }

// Log logs a panic that is to be reported, with args and its stack.
func (e End) Log(logger *slog.Logger, msg string, args ...any) {
	v, ok := e.Panic()
	if !ok {
		return
	}
	if logger == nil {
		logger = slog.Default()
	}
	logger.Error(msg, append(args, "panic", v, "stack", string(Stack()))...)
}

// Call calls f and reports whether it has returned. If it has not, ended is called on
// the same goroutine, with the stack of the panic still in place. After a panic Call
// then returns; after runtime.Goexit it does not, and the goroutine ends. Neither f nor
// ended is kept, so function literals passed to Call are not allocated.
func Call(f func(), ended func(End)) (returned bool) {
	defer Ended(&returned, ended)
	f()
	return true
}

// Ended is what Call defers. Code that runs for every request defers it itself, which saves two
// calls, and sets *returned when the user code has returned. It must be deferred directly, since
// it calls recover.
func Ended(returned *bool, ended func(End)) {
	if *returned {
		return
	}
	v := recover()
	ended(End{v, v == nil || exiting()})
}

// exiting reports whether a panic came while the goroutine was being ended, from a
// function that was deferred: it can be recovered, and the goroutine ends nevertheless.
func exiting() bool {
	var pcs [64]uintptr
	for skip := 0; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		frames := runtime.CallersFrames(pcs[:n])
		for more := n > 0; more; {
			var f runtime.Frame
			if f, more = frames.Next(); f.Function == "runtime.Goexit" {
				return true
			}
		}
		if n < len(pcs) {
			return false
		}
	}
}

// Finish calls f, and then ended in any case. A panic goes on to the caller afterwards.
func Finish(f func(), ended func(returned bool)) {
	returned := false
	defer func() { ended(returned) }()
	f()
	returned = true
}

// Stack returns the stack of the calling goroutine as text, of up to 64 KiB.
func Stack() []byte {
	b := make([]byte, 64<<10)
	return b[:runtime.Stack(b, false)]
}
