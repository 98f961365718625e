package h3

import (
	"net/http"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/bridge/section"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/pack"
	"github.com/chert-http/chert/internal/sys"
)

// This file is an answer as its handler makes it.

// qpack is the section.Encoder of HTTP/3. Its Status, which comes first, begins a section.
type qpack struct{}

func (qpack) Status(b []byte, status int) []byte {
	return http3.AppendStatus(http3.AppendPrefix(b), status)
}
func (qpack) Field(b []byte, name, value string) []byte { return http3.AppendField(b, name, value) }
func (qpack) Int(b []byte, id pack.NameID, n int64) []byte {
	return http3.AppendInt(b, id, n)
}
func (qpack) Type(b []byte, value string) []byte { return http3.AppendType(b, value) }
func (qpack) Date(b []byte, now int64) []byte    { return dateField.Append(b, now) }

// dateField is shared by all connections.
var dateField = section.DateField{Encode: http3.AppendKnown}

// Begin implements bridge.Message.
func (st *stream) Begin() *bridge.Progress {
	st.writing = section.Begin(qpack{})
	return &st.writing.Progress
}

// End implements bridge.Message.
func (st *stream) End() (held int64) {
	w := st.writing
	given, failed := w.Given, w.Err != nil
	if held, st.writing = w.End(), nil; failed { // some of what put has failed with may be sent
		held = max(given-st.sent, 0)
	}
	return held
}

// Interim implements bridge.Message.
func (st *stream) Interim(status int, h http.Header) error {
	return st.put(section.Interim(qpack{}, make([]byte, 0, 64), status, h), nil, nil)
}

// Head implements bridge.Message.
func (st *stream) Head(status int, h http.Header) {
	if st.writing.Head(status, h, st.s.Logf) {
		st.leave = true
	}
}

// Complete implements bridge.Message.
func (st *stream) Complete(p []byte) error {
	st.writing.Complete(&st.Res, st.IsHEAD, p, sys.Nanotime, nil)
	return nil
}

// Data implements bridge.Message.
func (st *stream) Data(p []byte) error {
	w := st.writing
	if w.Gather(p) {
		return nil
	}
	return st.commit(w.Gathered(), p) // of an error End knows
}

// Flush implements bridge.Message.
func (st *stream) Flush() error { return st.commit(st.writing.Gathered(), nil) }

// commit sends the head if it has not been sent, and then a and b of the body.
func (st *stream) commit(a, b []byte) error {
	head := st.writing.Take()
	if len(head) > 0 {
		st.status = int32(st.writing.Status)
		st.declare(st.writing.Length)
	}
	return st.put(head, a, b)
}

// Finish implements bridge.Message.
func (st *stream) Finish(h http.Header, short bool) conn.Next {
	w := st.writing
	if w.Err != nil {
		return conn.Close
	}
	if w.Err = st.Flush(); w.Err != nil || short {
		// The client counts on Content-Length; a reset tells it that less came.
		return conn.Close
	}
	if tail := w.Tail(h, st.IsHEAD); len(tail) > 0 {
		if w.Err = st.put(append(http3.AppendPrefix(nil), tail...), nil, nil); w.Err != nil {
			return conn.Close
		}
	}
	if w.Err = st.endSent(); w.Err != nil {
		return conn.Close
	}
	return conn.More
}
