package http3

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/chert-http/chert/internal/bridge/h3"
	codec "github.com/chert-http/chert/internal/http3"
)

// This file is quic-go's connections and streams as package h3 has them.

// connection is a *quic.Conn as an h3.Conn.
type connection struct {
	c     *quic.Conn
	state *tls.ConnectionState
}

func (c connection) Accept() (h3.Stream, error) {
	str, err := c.c.AcceptStream(context.Background())
	if err != nil {
		return nil, err
	}
	return stream{str}, nil
}

func (c connection) AcceptUni() (h3.ReceiveStream, error) {
	str, err := c.c.AcceptUniStream(context.Background())
	if err != nil {
		return nil, err
	}
	return receiveStream{str}, nil
}

func (c connection) OpenUni() (h3.SendStream, error) {
	str, err := c.c.OpenUniStream()
	if _, ok := errors.AsType[*quic.StreamLimitReachedError](err); ok {
		return nil, h3.ErrNoStream
	}
	if err != nil {
		return nil, err
	}
	return sendStream{str}, nil
}

func (c connection) Close(code codec.ErrCode, reason string) {
	c.c.CloseWithError(quic.ApplicationErrorCode(code), reason)
}

func (c connection) TLS() *tls.ConnectionState { return c.state }
func (c connection) LocalAddr() net.Addr       { return c.c.LocalAddr() }
func (c connection) RemoteAddr() net.Addr      { return c.c.RemoteAddr() }
func (c connection) RTT() time.Duration        { return c.c.ConnectionStats().SmoothedRTT }
func (c connection) Sent() uint64              { return c.c.ConnectionStats().PacketsSent }

// stream is a *quic.Stream as an h3.Stream.
type stream struct{ *quic.Stream }

func (s stream) ID() uint64                      { return uint64(s.StreamID()) }
func (s stream) Stop(code codec.ErrCode)         { s.CancelRead(quic.StreamErrorCode(code)) }
func (s stream) Reset(code codec.ErrCode)        { s.CancelWrite(quic.StreamErrorCode(code)) }
func (s stream) Release()                        { s.ReleaseStreamCredit() }
func (s stream) End() error                      { return s.Close() }
func (s stream) TryWrite(p []byte) (bool, error) { return tried(s.TryWriteAll(p)) }

// tried is the result of a TryWriteAll.
func tried(err error) (ok bool, _ error) {
	if err == quic.ErrWouldBlock {
		return false, nil
	}
	return err == nil, err
}

// receiveStream is a *quic.ReceiveStream as an h3.ReceiveStream.
type receiveStream struct{ *quic.ReceiveStream }

func (s receiveStream) Read(p []byte) (int, error) {
	n, err := s.ReceiveStream.Read(p)
	return n, reset(err) // as it is read to its end if it is not stopped
}

// reset is err, of a unidirectional stream, as package h3 has it.
func reset(err error) error {
	if _, ok := err.(*quic.StreamError); ok {
		return h3.ErrReset
	}
	return err
}

func (s receiveStream) Stop(code codec.ErrCode) { s.CancelRead(quic.StreamErrorCode(code)) }
func (s receiveStream) Release()                { s.ReleaseStreamCredit() }

// sendStream is a *quic.SendStream as an h3.SendStream.
type sendStream struct{ *quic.SendStream }

func (s sendStream) Reset(code codec.ErrCode)        { s.CancelWrite(quic.StreamErrorCode(code)) }
func (s sendStream) End() error                      { return s.Close() }
func (s sendStream) TryWrite(p []byte) (bool, error) { return tried(reset(s.TryWriteAll(p))) }
