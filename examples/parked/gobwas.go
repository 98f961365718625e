package main

import (
	"errors"
	"io"
	"net/http"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

var errEnded = errors.New("the connection has ended")

// hand reads single frames. It keeps what has come of a message that is not complete.
type hand struct {
	*buffered
	op   ws.OpCode
	part []byte
}

func (s *sockets) byHand(w http.ResponseWriter, r *http.Request) {
	nc, rw, _, err := ws.UpgradeHTTP(r, w)
	if err != nil {
		return
	}
	h := &hand{buffered: &buffered{nc, rw.Reader}}
	s.start(h.buffered, h.frame)
}

// frame reads one frame and answers it.
func (h *hand) frame() error {
	head, err := ws.ReadHeader(h)
	if err != nil {
		return err
	}
	state := ws.StateServerSide
	if len(h.part) > 0 || h.op != 0 {
		state = state.Set(ws.StateFragmented)
	}
	if err := ws.CheckHeader(head, state); err != nil {
		return h.close(ws.StatusProtocolError, err)
	}
	if head.Length > maxMessage-int64(len(h.part)) {
		return h.close(ws.StatusMessageTooBig, errEnded)
	}
	// What has come is kept, not what the head announces.
	p, err := io.ReadAll(io.LimitReader(h, head.Length))
	if err == nil && int64(len(p)) < head.Length {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	ws.Cipher(p, head.Mask, 0)
	switch head.OpCode {
	case ws.OpPing:
		return ws.WriteFrame(h, ws.NewPongFrame(p))
	case ws.OpPong:
		return nil
	case ws.OpClose:
		ws.WriteFrame(h, ws.NewCloseFrame(p))
		return errEnded
	case ws.OpText, ws.OpBinary:
		h.op = head.OpCode
	}
	h.part = append(h.part, p...)
	if !head.Fin {
		return nil
	}
	err = ws.WriteFrame(h, ws.NewFrame(h.op, true, h.part))
	h.op, h.part = 0, nil
	return err
}

func (h *hand) close(code ws.StatusCode, err error) error {
	ws.WriteFrame(h, ws.NewCloseFrame(ws.NewCloseFrameBody(code, "")))
	return err
}

func (s *sockets) byWsutil(w http.ResponseWriter, r *http.Request) {
	nc, rw, _, err := ws.UpgradeHTTP(r, w)
	if err != nil {
		return
	}
	c := &buffered{nc, rw.Reader}
	s.start(c, func() error { return message(c) })
}

// message reads one message and answers it. Not by wsutil.ReadClientData: after a ping
// that waits for the next message, and a client that only sends pings would hold a
// goroutine.
func message(c *buffered) error {
	rd := wsutil.DefaultReader(c, ws.StateServerSide)
	rd.MaxMessageSize = maxMessage
	control := wsutil.ControlFrameHandler(c, ws.StateServerSide)
	rd.OnIntermediate = control
	head, err := rd.NextFrame()
	if err != nil {
		return err
	}
	if head.OpCode.IsControl() {
		return control(head, rd)
	}
	p, err := io.ReadAll(rd)
	if err != nil {
		return err
	}
	return wsutil.WriteServerMessage(c, head.OpCode, p)
}
