package h2

import (
	"net/http"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/bridge/section"
	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/pack"
	"github.com/chert-http/chert/internal/sys"
)

// This file is an answer as its handler makes it: a header block, and pieces of body
// that gather before they become DATA.

// hpack is the section.Encoder of HTTP/2.
type hpack struct{}

func (hpack) Status(b []byte, status int) []byte           { return http2.AppendStatus(b, status) }
func (hpack) Field(b []byte, name, value string) []byte    { return http2.AppendField(b, name, value) }
func (hpack) Int(b []byte, id pack.NameID, n int64) []byte { return http2.AppendInt(b, id, n) }
func (hpack) Type(b []byte, value string) []byte           { return http2.AppendType(b, value) }
func (hpack) Date(b []byte, now int64) []byte              { return dateField.Append(b, now) }

// dateField is shared by all connections.
var dateField = section.DateField{Encode: http2.AppendKnown}

func (st *stream) Begin() *bridge.Progress {
	st.writing = section.Begin(hpack{})
	return &st.writing.Progress
}

func (st *stream) End() (held int64) {
	w := st.writing
	st.writing = nil
	given, failed := w.Given, w.Err != nil
	if held = w.End(); failed { // some of what commit has failed with may be sent
		st.s.mu.Lock()
		defer st.s.mu.Unlock()
		held = max(given-st.sent-int64(st.rest.len()), 0)
	}
	return held
}

func (st *stream) Interim(status int, h http.Header) error {
	st.spare(h)
	block := section.Interim(hpack{}, make([]byte, 0, 64), status, h)
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := st.awaitRoom(); err != nil {
		return err
	}
	if status == http.StatusContinue {
		st.awaits = false
	}
	s.putBlockLocked(st, block, false)
	s.pass(nil)
	return nil
}

// Head implements bridge.Message. The block is made at once, which is the snapshot
// that WriteHeader promises.
func (st *stream) Head(status int, h http.Header) {
	st.spare(h)
	if st.writing.Head(status, h, st.s.Logf) {
		st.leave = true
	}
}

func (st *stream) Complete(p []byte) error {
	st.writing.Complete(&st.Exchange.Res, st.IsHEAD, p, st.now, st.s.cfg.AltSvc.Block())
	return nil
}

// now returns the time for the Date field: the loop's, if the handler still has the lease.
func (st *stream) now() int64 {
	if st.inTurn && st.place.Held() {
		return st.Time.Since
	}
	return sys.Nanotime()
}

func (st *stream) Data(p []byte) error {
	w := st.writing
	if w.Gather(p) {
		return nil
	}
	if err := st.commit(w.Take(), w.Gathered(), p, false, nil); err != nil {
		return err // which End knows of
	}
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out != nil && !s.inData.Load() {
		s.settleSoonLocked() // the handler may go on for long
	}
	return nil
}

func (st *stream) Flush() error {
	w := st.writing
	if err := st.commit(w.Take(), w.Gathered(), nil, false, nil); err != nil {
		return err
	}
	st.s.flush()
	return nil
}

func (st *stream) Finish(h http.Header, short bool) conn.Next {
	w := st.writing
	if w.Err != nil || short {
		// The client counts on Content-Length; a reset tells it that less came.
		if w.Err == nil {
			w.Err = st.Flush()
		}
		return conn.Close
	}
	var tail *buf.Buf
	if block := w.Tail(h, st.IsHEAD); len(block) > 0 {
		tail = buf.Get(len(block))
		tail.B = append(tail.B, block...)
	}
	if w.Err = st.commit(w.Take(), w.Gathered(), nil, true, tail); w.Err != nil {
		tail.Drop()
		return conn.Close
	}
	return conn.More
}
