package http3_test

import (
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/chert-http/chert"
	codec "github.com/chert-http/chert/internal/http3"
)

func settings(p ...byte) []byte { return frame(codec.FrameSettings, p) }

// manySettings is the payload of n that are unknown.
func manySettings(n uint64) (p []byte) {
	for i := range n {
		p = append(codec.AppendVarint(p, 0x1f*i+0x21), 0)
	}
	return p
}

// What may and may not be on the unidirectional streams (RFC 9114 sections 6.2 and 7.2, RFC 9204
// section 4.2, RFC 9218 section 7.2).
func TestControl(t *testing.T) {
	t.Parallel()
	control := func(parts ...[]byte) func(c *raw) {
		return func(c *raw) { c.uni(codec.StreamControl, join(parts...)) }
	}
	after := func(parts ...[]byte) func(c *raw) { return control(append([][]byte{settings()}, parts...)...) }
	stream := func(t codec.StreamType, p ...byte) func(c *raw) { return func(c *raw) { c.uni(t, p) } }
	end := func(t codec.StreamType, p ...byte) func(c *raw) { return func(c *raw) { c.uni(t, p).Close() } }
	reset := func(t codec.StreamType, p ...byte) func(c *raw) {
		return func(c *raw) {
			// Of a stream that is reset before the server has read its type it knows nothing.
			for critical := t <= codec.StreamQPACKDecoder; ; {
				str := c.uni(t, p)
				c.get("/")
				str.CancelWrite(quic.StreamErrorCode(codec.NoError))
				if !critical {
					return
				}
				select {
				case <-c.Context().Done():
					return
				case <-time.After(time.Second):
				}
			}
		}
	}
	stop := func(c *raw) {
		if str, err := c.AcceptUniStream(c.Context()); err == nil {
			str.CancelRead(quic.StreamErrorCode(codec.NoError))
		}
	}
	update := func(t codec.FrameType, id uint64) []byte {
		return frame(t, append(codec.AppendVarint(nil, id), "u=1"...))
	}
	s := serve(t, &chert.Server{Handler: hf(hello)})
	for _, tt := range []struct {
		name string
		send func(c *raw)
		want string // "" goes on
	}{
		{"no stream", func(*raw) {}, ""},
		{"SETTINGS", after(), ""},
		{"SETTINGS that are unknown", control(settings(0x21, 7, 0x40, 0x99, 0)), ""},
		{"SETTINGS late", func(c *raw) { str := c.uni(codec.StreamControl, nil); c.get("/"); str.Write(settings()) }, ""},
		{"a type in a long integer", func(c *raw) {
			c.uni(0x21, nil)
			str, _ := c.OpenUniStream()
			str.Write(join([]byte{0xc0, 0, 0, 0, 0, 0, 0, 0}, settings()))
		}, ""},
		{"most settings", control(settings(manySettings(64)...)), ""},
		{"PRIORITY_UPDATE of the last request", after(update(codec.FramePriorityUpdate, 1<<62-4)), ""},
		{"unknown frames", after(frame(0x21, []byte("x")), frame(0x41, nil)), ""},
		{"PRIORITY_UPDATE", after(update(codec.FramePriorityUpdate, 0), update(codec.FramePriorityUpdate, 400)), ""},
		{"MAX_PUSH_ID", after(frame(codec.FrameMaxPushID, []byte{3}), frame(codec.FrameMaxPushID, []byte{3})), ""},
		{"GOAWAY", after(codec.AppendGoAway(nil, 3), codec.AppendGoAway(nil, 3), codec.AppendGoAway(nil, 0)), ""},
		{"an unknown stream", stream(0x21, 1, 2, 3), ""},
		{"an unknown stream that ends", end(0x21), ""},
		{"an unknown stream that is reset", reset(0x21), ""},
		{"a stream without a type", func(c *raw) { str, _ := c.OpenUniStream(); str.Write([]byte{0xc0}); str.Close() }, ""},
		{"a QPACK encoder", stream(codec.StreamQPACKEncoder), ""},
		{"a capacity of 0", stream(codec.StreamQPACKEncoder, 0x20, 0x20), ""},
		{"a QPACK decoder", stream(codec.StreamQPACKDecoder), ""},
		{"cancellations", stream(codec.StreamQPACKDecoder, 0x40, 0x44, 0x7f, 0x80, 0), ""},

		{"SETTINGS not first", control(frame(codec.FrameMaxPushID, []byte{3})), "H3_MISSING_SETTINGS"},
		{"unknown frames first", control(frame(0x21, nil), settings()), "H3_MISSING_SETTINGS"},
		{"SETTINGS twice", after(settings()), "H3_FRAME_UNEXPECTED"},
		{"SETTINGS with one twice", control(settings(6, 1, 6, 1)), "H3_SETTINGS_ERROR"},
		{"SETTINGS with CONNECT twice", control(settings(8, 1, 8, 1)), "H3_SETTINGS_ERROR"},
		{"SETTINGS with an unknown one twice", control(settings(13, 37, 13, 37)), "H3_SETTINGS_ERROR"},
		{"SETTINGS with a large one twice", control(settings(0x40, 0x40, 0, 0x40, 0x40, 0)), "H3_SETTINGS_ERROR"},
		{"a setting of HTTP/2", control(settings(4, 1)), "H3_SETTINGS_ERROR"},
		{"a setting of HTTP/2 after a reserved one", control(settings(0x21, 0, 2, 0)), "H3_SETTINGS_ERROR"},
		{"a setting that is no bool", control(settings(8, 2)), "H3_SETTINGS_ERROR"},
		{"SETTINGS that are cut", control(settings(6)), "H3_FRAME_ERROR"},
		{"SETTINGS that are too long", control(codec.AppendHeader(nil, codec.FrameSettings, 1<<20)), "H3_EXCESSIVE_LOAD"},
		{"too many settings", control(settings(manySettings(65)...)), "H3_EXCESSIVE_LOAD"},
		{"SETTINGS that end the stream", func(c *raw) { c.uni(codec.StreamControl, settings(6, 1)[:3]).Close() }, "H3_CLOSED_CRITICAL_STREAM"},
		{"DATA", after(data("x")), "H3_FRAME_UNEXPECTED"},
		{"DATA first", control(data("x")), "H3_MISSING_SETTINGS"},
		{"HEADERS", after(headers(get...)), "H3_FRAME_UNEXPECTED"},
		{"PUSH_PROMISE", after(frame(codec.FramePushPromise, []byte{0})), "H3_FRAME_UNEXPECTED"},
		{"a frame of HTTP/2", after(frame(0x6, nil)), "H3_FRAME_UNEXPECTED"},
		{"a frame of HTTP/2 first", control(frame(0x6, nil)), "H3_MISSING_SETTINGS"},
		{"PRIORITY of HTTP/2", after(frame(0x2, nil)), "H3_FRAME_UNEXPECTED"},
		{"WINDOW_UPDATE of HTTP/2", after(frame(0x8, nil)), "H3_FRAME_UNEXPECTED"},
		{"CONTINUATION of HTTP/2", after(frame(0x9, nil)), "H3_FRAME_UNEXPECTED"},
		{"CANCEL_PUSH", after(frame(codec.FrameCancelPush, []byte{0})), "H3_ID_ERROR"},
		{"MAX_PUSH_ID that falls", after(frame(codec.FrameMaxPushID, []byte{3}), frame(codec.FrameMaxPushID, []byte{2})), "H3_ID_ERROR"},
		{"MAX_PUSH_ID that is empty", after(frame(codec.FrameMaxPushID, nil)), "H3_FRAME_ERROR"},
		{"MAX_PUSH_ID that is long", after(frame(codec.FrameMaxPushID, []byte{3, 0})), "H3_FRAME_ERROR"},
		{"GOAWAY that rises", after(codec.AppendGoAway(nil, 3), codec.AppendGoAway(nil, 4)), "H3_ID_ERROR"},
		{"GOAWAY that is too long", after(codec.AppendHeader(nil, codec.FrameGoAway, 1<<30)), "H3_FRAME_ERROR"},
		{"GOAWAY that is cut", after(frame(codec.FrameGoAway, []byte{0x40})), "H3_FRAME_ERROR"},
		{"PRIORITY_UPDATE of no request", after(update(codec.FramePriorityUpdate, 2)), "H3_ID_ERROR"},
		{"PRIORITY_UPDATE of a push", after(update(codec.FramePriorityUpdatePush, 0)), "H3_ID_ERROR"},
		{"PRIORITY_UPDATE that is too long", after(codec.AppendHeader(nil, codec.FramePriorityUpdate, 1<<20)), "H3_EXCESSIVE_LOAD"},
		{"PRIORITY_UPDATE that is empty", after(frame(codec.FramePriorityUpdate, nil)), "H3_FRAME_ERROR"},

		{"control twice", func(c *raw) { after()(c); after()(c) }, "H3_STREAM_CREATION_ERROR"},
		{"QPACK encoder twice", func(c *raw) { stream(2)(c); stream(2)(c) }, "H3_STREAM_CREATION_ERROR"},
		{"QPACK decoder twice", func(c *raw) { stream(3)(c); stream(3)(c) }, "H3_STREAM_CREATION_ERROR"},
		{"a push", stream(codec.StreamPush, 0), "H3_STREAM_CREATION_ERROR"},
		{"control ends", end(codec.StreamControl, settings()...), "H3_CLOSED_CRITICAL_STREAM"},
		{"control ends at once", end(codec.StreamControl), "H3_CLOSED_CRITICAL_STREAM"},
		{"control is reset", reset(codec.StreamControl, settings()...), "H3_CLOSED_CRITICAL_STREAM"},
		{"control is reset before SETTINGS", reset(codec.StreamControl), "H3_CLOSED_CRITICAL_STREAM"},
		{"the server's control is stopped", stop, "H3_CLOSED_CRITICAL_STREAM"},
		{"QPACK encoder ends", end(codec.StreamQPACKEncoder), "H3_CLOSED_CRITICAL_STREAM"},
		{"QPACK encoder is reset", reset(codec.StreamQPACKEncoder), "H3_CLOSED_CRITICAL_STREAM"},
		{"QPACK decoder ends", end(codec.StreamQPACKDecoder), "H3_CLOSED_CRITICAL_STREAM"},
		{"a capacity", stream(codec.StreamQPACKEncoder, 0x3f, 0x21), "QPACK_ENCODER_STREAM_ERROR"},
		{"an insertion", stream(codec.StreamQPACKEncoder, 0xc1, 1, 'x'), "QPACK_ENCODER_STREAM_ERROR"},
		{"a duplication", stream(codec.StreamQPACKEncoder, 0), "QPACK_ENCODER_STREAM_ERROR"},
		{"an acknowledgment", stream(codec.StreamQPACKDecoder, 0x80), "QPACK_DECODER_STREAM_ERROR"},
		{"a section's acknowledgment of a long ID", stream(codec.StreamQPACKDecoder, 0xff, 0xff, 0xff), "QPACK_DECODER_STREAM_ERROR"},
		{"a cancellation of an ID that is too large", stream(codec.StreamQPACKDecoder, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), "QPACK_DECODER_STREAM_ERROR"},
		{"an insertion by reference", stream(codec.StreamQPACKEncoder, 0x41, 'a', 1, 'b'), "QPACK_ENCODER_STREAM_ERROR"},
		{"a capacity after one of 0", stream(codec.StreamQPACKEncoder, 0x20, 0x21), "QPACK_ENCODER_STREAM_ERROR"},
		{"an increment", stream(codec.StreamQPACKDecoder, 1), "QPACK_DECODER_STREAM_ERROR"},
		{"an increment of 0", stream(codec.StreamQPACKDecoder, 0), "QPACK_DECODER_STREAM_ERROR"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := s.at(t).bare(nil)
			tt.send(c)
			if tt.want != "" {
				if got := c.ended(); got != "CLOSE "+tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
				return
			}
			for range 3 {
				if a := c.get("/"); a.ending() != "200" {
					t.Fatalf("%+v", a)
				}
			}
		})
	}
}

// A client has to let the server open streams, with room for SETTINGS (RFC 9114 section 6.2).
func TestNoRoomForControl(t *testing.T) {
	t.Parallel()
	s := serve(t, &chert.Server{Handler: hf(hello)})
	for name, o := range map[string]*quic.Config{
		"no stream": {MaxIncomingUniStreams: -1},
		"no window": {InitialStreamReceiveWindow: 1},
	} {
		if got := s.bare(o).ended(); got != "CLOSE H3_GENERAL_PROTOCOL_ERROR" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// The server's own control stream (RFC 9114 section 6.2.1, RFC 9204 section 4.2).
func TestServersControl(t *testing.T) {
	t.Parallel()
	for _, connect := range []bool{false, true} {
		s := serve(t, &chert.Server{Handler: hf(hello), MaxHeaderBytes: 5000, ExtendedConnect: connect})
		c := s.raw()
		str, err := c.AcceptUniStream(c.Context())
		if err != nil {
			t.Fatal(err)
		}
		var p [100]byte
		n, err := str.Read(p[:])
		if err != nil || n < 3 || p[0] != byte(codec.StreamControl) || p[1] != byte(codec.FrameSettings) || int(p[2]) != n-3 {
			t.Fatalf("%x, %v", p[:n], err)
		}
		got := codec.DefaultSettings
		if err := got.Parse(p[3:n]); err != nil || got.ExtendedConnect != connect || got.QPACKTable != 0 || got.MaxFieldSection < 5000 {
			t.Errorf("%+v, %v", got, err)
		}
	}
}
