package h2

import "testing"

// A stream whose both ends have been sent is closed for the client, which may have begun another in its place before the
// goroutine of the handler has come back. One that the client has reset keeps its place while its handler runs.
func TestPlaceOfEndedStream(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		set  func(st *stream)
		want bool
	}{
		{"open", func(st *stream) { st.remoteClosed = true }, false},
		{"answered, and the request goes on", func(st *stream) { st.become(stateAnswered) }, false},
		{"reset, and its handler runs", func(st *stream) { st.remoteClosed = true; st.closeLocked(new(resetError)) }, false},
		{"ended", func(st *stream) { st.remoteClosed = true; st.become(stateAnswered) }, true},
	} {
		s, st, _ := quiet()
		s.cfg.MaxStreams = len(s.streams)
		tt.set(st)
		if got := s.open(101, new(request), true) != nil; got != tt.want {
			t.Errorf("%s: another stream is accepted: %v, want %v", tt.name, got, tt.want)
		}
	}
}
