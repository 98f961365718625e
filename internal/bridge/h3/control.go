package h3

import (
	"cmp"
	"context"
	"io"

	"github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/priority"
)

// This file is the unidirectional streams (RFC 9114 section 6.2).

// hello opens the control stream. Streams of QPACK are not opened: without a table there is nothing
// to say on them (RFC 9204 section 4.2).
func (s *Session) hello() error {
	str, err := s.qc.OpenUni()
	if err == ErrNoStream { // RFC 9114 section 6.2: a client must permit three at least
		return errNoUni
	}
	if err != nil {
		return err
	}
	settings := []http3.Setting{{ID: http3.SettingMaxFieldSectionSize, Value: uint64(s.cfg.List.Bytes)}}
	if s.cfg.ExtendedConnect {
		settings = append(settings, http3.Setting{ID: http3.SettingEnableConnectProtocol, Value: 1})
	}
	b := http3.AppendSettings(http3.AppendVarint(nil, uint64(http3.StreamControl)), settings...)
	// RFC 9114 section 6.2: a client should let us send 1,024 bytes at least.
	if ok, err := str.TryWrite(b); err != nil || !ok {
		return cmp.Or(err, error(errNoWindow))
	}
	s.mu.Lock()
	s.control = str
	s.mu.Unlock()
	context.AfterFunc(str.Context(), func() {
		if _, err := str.TryWrite(nil); err == ErrReset { // and not the connection's end
			s.fail(errStopped)
		}
	})
	return nil
}

// acceptUni accepts what the client opens.
func (s *Session) acceptUni() {
	for {
		str, err := s.qc.AcceptUni()
		if err != nil {
			return
		}
		go s.readUni(str)
	}
}

// readUni reads a stream to its end.
func (s *Session) readUni(str ReceiveStream) {
	defer str.Release()
	var kind http3.VarintReader
	var buf [64]byte // on the heap, as long as the connection: most streams have no more
	for {
		n, err := str.Read(buf[:])
		v, used, done := kind.Read(buf[:n])
		switch {
		case done:
			s.readTyped(http3.StreamType(v), str, buf[:], buf[used:n], err)
			return
		case err != nil: // RFC 9114 section 6.2: that is no error
			s.spendUseless(0)
			return
		}
	}
}

var (
	errTwice      = &http3.ConnError{Code: http3.StreamCreationError, Reason: "a second stream of a type"}
	errClientPush = &http3.ConnError{Code: http3.StreamCreationError, Reason: "a client pushes"}
	errCritical   = &http3.ConnError{Code: http3.ClosedCriticalStream, Reason: "a critical stream has ended"}
	errStopped    = &http3.ConnError{Code: http3.ClosedCriticalStream, Reason: "the control stream is not wanted"}
	errNoPush     = &http3.ConnError{Code: http3.IDError, Reason: "a push that was not promised"}
	errPushID     = &http3.ConnError{Code: http3.IDError, Reason: "MAX_PUSH_ID becomes less"}
	errGoAway     = &http3.ConnError{Code: http3.IDError, Reason: "the ID of a GOAWAY becomes larger"}
	errNoUni      = &http3.ConnError{Code: http3.GeneralProtocolError, Reason: "no unidirectional stream is permitted"}
	errNoWindow   = &http3.ConnError{Code: http3.GeneralProtocolError, Reason: "there is no room for SETTINGS"}
)

// readTyped reads a stream of a type, of which b has come, and err after it. buf is what b is part
// of.
func (s *Session) readTyped(t http3.StreamType, str ReceiveStream, buf, b []byte, err error) {
	var read func(p []byte) error
	switch t {
	case http3.StreamControl:
		var c control
		read = func(p []byte) error { return c.read(s, p) }
	case http3.StreamQPACKEncoder:
		read = func(p []byte) error {
			err := http3.CheckEncoderStream(p)
			if err == nil && len(p) > 0 {
				s.spendUseless(uint64(len(p)))
			}
			return err
		}
	case http3.StreamQPACKDecoder:
		var d http3.DecoderStream
		read = func(p []byte) error {
			n, err := d.Check(p)
			for ; err == nil && n > 0 && s.spendUseless(0); n-- {
			}
			return err
		}
	case http3.StreamPush:
		s.fail(errClientPush)
		return
	default: // RFC 9114 section 9
		str.Stop(http3.StreamCreationError)
		s.spendUseless(0)
		return
	}
	s.mu.Lock()
	twice := s.seen[t]
	s.seen[t] = true
	s.mu.Unlock()
	if twice {
		s.fail(errTwice)
		return
	}
	for {
		if e := read(b); e != nil {
			s.failed(e)
			return
		}
		if err != nil {
			break
		}
		var n int
		n, err = str.Read(buf)
		b = buf[:n]
	}
	if err == io.EOF || err == ErrReset { // and not the connection's end
		s.fail(errCritical)
	}
}

// control is the client's control stream.
type control struct {
	http3.Control
	maxPush uint64
	away    uint64 // one more than the ID of GOAWAY; 0: none has come
}

func (c *control) read(s *Session, b []byte) error {
	for {
		h, payload, n, ok, err := c.Next(b)
		switch {
		case err != nil:
			return err
		case !ok && len(b) > 0 && !s.spendUseless(uint64(len(b))):
			return nil
		case !ok:
			return nil
		}
		b = b[n:]
		if err := c.frame(s, h, payload); err != nil {
			return err
		}
	}
}

// frame handles a frame that has a meaning.
func (c *control) frame(s *Session, h http3.Header, payload []byte) error {
	if h.Type != http3.FrameSettings && !s.spendUseless(0) {
		return nil
	}
	switch h.Type {
	case http3.FrameSettings:
		s := http3.DefaultSettings // none changes what is sent
		return s.Parse(payload)
	case http3.FrameGoAway: // of pushes, of which there are none
		id, err := http3.ParseID(payload)
		// RFC 9114 section 5.2: the ID must not be greater than any before.
		if err == nil && c.away != 0 && id >= c.away {
			err = errGoAway
		}
		c.away = id + 1
		return err
	case http3.FrameMaxPushID:
		id, err := http3.ParseID(payload)
		if err == nil && id < c.maxPush { // RFC 9114 section 7.2.7
			err = errPushID
		}
		c.maxPush = id
		return err
	case http3.FrameCancelPush, http3.FramePriorityUpdatePush:
		return errNoPush
	case http3.FramePriorityUpdate:
		id, p, err := http3.ParsePriorityUpdate(payload)
		if err == nil {
			s.reprioritize(id, p)
		}
		return err
	}
	return nil
}

// reprioritize is RFC 9218 section 7.2.
func (s *Session) reprioritize(id uint64, p priority.Priority) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.streams[id]; st != nil {
		st.updated = true
		st.str.SetPriority(int8(p.Urgency), p.Incremental)
		return
	}
	// It may come before the request. What is farther away than the client may open, or more than
	// that many, is of no use.
	if id >= s.next && id < s.next+4*uint64(s.cfg.MaxStreams) {
		if s.early == nil {
			s.early = make(map[uint64]priority.Priority)
		}
		if len(s.early) < s.cfg.MaxStreams {
			s.early[id] = p
		}
	}
}
