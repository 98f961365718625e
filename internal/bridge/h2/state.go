package h2

import "fmt"

// A state is how far a stream is, as the server sees it.
//
//	HEADERS                                the client's fault is answered without a handler
//	   |                                          .-----------------------------.
//	   v            the body comes first          |                             |
//	  new ----------> deferred                    |                             |
//	   | \               |                        |                             |
//	   |  `-----> queued | for a slot             |                             |
//	   |             |   |                        |                             |
//	   |             v   v                        |                             |
//	   |<---------> running ----------------> answered   END_STREAM is out      |
//	   |  direct       |                          |                             |
//	   |               |                          |      the handler returns    |
//	   |               v                          v                             |
//	   `----------> sending ----------------> lingering <-----------------------'
//	                   |                          |
//	                   v                          v
//	                 closed <---------------------'      from every state
//
// direct is running for a direct handler, which may decline: the stream is new again. reset is
// closed for the client, while the stream's Run has not ended.
//
// The states of RFC 9113 section 5.1 follow from this one and from stream.remoteClosed, which
// is whether END_STREAM has come:
//
//	                       END_STREAM has not come    has come
//	new to running         open                       half-closed (remote)
//	answered               half-closed (local)        closed
//	sending                open                       half-closed (remote)
//	lingering              half-closed (local)        (then it is closed)
//	reset, closed          closed                     closed
type state uint8

const (
	stateNew       state = iota // HEADERS have come, and no handler runs
	stateDeferred               // its handler begins when the body has come
	stateQueued                 // it waits for a slot
	stateDirect                 // a direct handler runs, or a file is sent for it
	stateRunning                // its handler runs, or waits for a goroutine
	stateAnswered               // END_STREAM is out; the Run has not ended
	stateSending                // the handler has returned; END_STREAM is not out
	stateLingering              // the handler has returned and END_STREAM is out, but has not come
	stateReset                  // closed; the Run has not ended
	stateClosed                 // the stream is in no list of the Session
	states         = iota
)

var stateNames = [states]string{
	"new", "deferred", "queued", "direct", "running", "answered", "sending", "lingering", "reset", "closed",
}

func (s state) String() string { return stateNames[s] }

func (s state) in(set stateSet) bool { return set>>s&1 != 0 }

type stateSet uint16

func setOf(of ...state) (set stateSet) {
	for _, s := range of {
		set |= 1 << s
	}
	return set
}

// transitions are the states that may follow each.
var transitions = [states]stateSet{
	stateNew: setOf(stateDeferred, stateQueued, stateDirect, stateRunning, stateSending, stateLingering,
		stateClosed),
	stateDeferred:  setOf(stateQueued, stateRunning, stateClosed),
	stateQueued:    setOf(stateRunning, stateClosed),
	stateDirect:    setOf(stateNew, stateAnswered, stateSending, stateReset, stateClosed),
	stateRunning:   setOf(stateAnswered, stateSending, stateReset, stateClosed),
	stateAnswered:  setOf(stateLingering, stateReset),
	stateSending:   setOf(stateLingering, stateReset, stateClosed),
	stateLingering: setOf(stateReset, stateClosed),
	stateReset:     setOf(stateClosed),
}

// become changes the state of st. mu is held; on loops, only once the handler has begun.
func (st *stream) become(to state) {
	if !to.in(transitions[st.state]) {
		st.wrong(to)
	}
	st.state = to
}

// wrong panics. It is apart so that become is inlined.
//
//go:noinline
func (st *stream) wrong(to state) {
	panic(fmt.Sprintf("h2: a stream that is %v becomes %v", st.state, to))
}

// begins changes the state of st to one in which a handler runs. It is the owner's, before the
// handler begins.
func (st *stream) begins(to state) {
	if s := st.s; !s.loops { // other goroutines may read the state
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	st.become(to)
}

// closed reports whether the stream is closed for the client. mu is held.
func (st *stream) closed() bool { return st.state >= stateReset }

// returned reports whether the handler has returned, and its Run has ended. mu is held.
func (st *stream) returned() bool { return st.state == stateSending || st.state == stateLingering }

// byUs reports whether a stream was closed by a RST_STREAM of the server's, after which the
// client may have sent more. mu is held.
func (st *stream) byUs() bool {
	_, reset := st.err.(*resetError)
	return !st.remoteClosed && !reset
}
