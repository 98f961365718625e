package h2

import (
	"strings"
	"testing"
)

// Each pair of states is either a transition or panics.
func TestTransitions(t *testing.T) {
	t.Parallel()
	allowed := map[string]string{
		"new":       "deferred queued direct running sending lingering closed",
		"deferred":  "queued running closed",
		"queued":    "running closed",
		"direct":    "new answered sending reset closed",
		"running":   "answered sending reset closed",
		"answered":  "lingering reset",
		"sending":   "lingering reset closed",
		"lingering": "reset closed",
		"reset":     "closed",
		"closed":    "",
	}
	become := func(from, to state) (ok bool) {
		defer func() { ok = recover() == nil }()
		st := &stream{s: new(Session), state: from}
		st.become(to)
		if st.state != to {
			t.Errorf("%v instead of %v", st.state, to)
		}
		return true
	}
	for from := range state(states) {
		to, ok := allowed[from.String()]
		if !ok {
			t.Errorf("no line for %v", from)
		}
		for next := range state(states) {
			want := strings.Contains(" "+to+" ", " "+next.String()+" ")
			if got := become(from, next); got != want {
				t.Errorf("from %v to %v: allowed: %v, want %v", from, next, got, want)
			}
		}
	}
}

// Every state can be reached from the first, and the last from each.
func TestStatesAreConnected(t *testing.T) {
	t.Parallel()
	reach := func(from state) (all stateSet) {
		all = setOf(from)
		for range states {
			for s := range state(states) {
				if s.in(all) {
					all |= transitions[s]
				}
			}
		}
		return all
	}
	for s := range state(states) {
		if !s.in(reach(stateNew)) {
			t.Errorf("%v is not reached", s)
		}
		if !stateClosed.in(reach(s)) {
			t.Errorf("%v does not end", s)
		}
	}
}

// A stream that is closed stays in the Session while something runs for it, and only then.
func TestCloseInEveryState(t *testing.T) {
	t.Parallel()
	for from := range stateReset {
		s, st, _ := quiet()
		st.state = from
		switch from {
		case stateDeferred:
			s.deferred = append(s.deferred, st)
		case stateLingering:
			s.lingerLocked(st)
		}
		want := stateClosed
		if from.in(setOf(stateDirect, stateRunning, stateAnswered)) {
			want = stateReset
		}
		if from == stateQueued {
			continue // see TestEndWhenASlotWasGiven
		}
		st.closeLocked(new(resetError))
		if st.state != want || (len(s.streams) > 0) != (want == stateReset) {
			t.Errorf("%v: then %v, of %d streams", from, st.state, len(s.streams))
		}
		if len(s.deferred)+s.lingering > 0 {
			t.Errorf("%v: it is kept", from)
		}
	}
}
