package http2

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	xhttp2 "golang.org/x/net/http2"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		frame string // its header in hex
		want  error
	}{
		{"000000 00 00 00000000", errNoStream},
		{"000000 00 00 00000001", nil},
		{"004000 00 00 00000001", nil},
		{"004001 00 00 00000001", ErrTooLarge},
		{"000000 01 00 00000000", errNoStream},
		{"000000 02 00 00000000", errNoStream},
		{"000004 02 00 00000001", nil}, // CheckPriority's
		{"000004 03 00 00000001", nil},
		{"000005 03 00 00000001", errFixedSize},
		{"000004 03 00 00000000", errNoStream},
		{"000000 04 00 00000001", errOnStream},
		{"000000 04 00 00000000", nil},
		{"000000 04 01 00000000", nil},
		{"000006 04 00 00000000", nil},
		{"000006 04 01 00000000", errSettingsSize},
		{"000005 04 00 00000000", errSettingsSize},
		{"000004 05 00 00000001", errPush},
		{"000008 06 00 00000000", nil},
		{"000007 06 00 00000000", errFixedSize},
		{"000008 06 00 00000001", errOnStream},
		{"000008 07 00 00000000", nil},
		{"000007 07 00 00000000", errShort},
		{"000008 07 00 00000001", errOnStream},
		{"000004 08 00 00000000", nil},
		{"000004 08 00 00000001", nil},
		{"000003 08 00 00000001", errFixedSize},
		{"000000 09 00 00000000", errNoStream},
		{"000000 09 04 00000001", nil},
		{"000000 0a ff 00000000", nil},
		{"004001 ff ff 7fffffff", ErrTooLarge},
		{"000000 00 00 80000000", errNoStream}, // the reserved bit
	} {
		if err := ParseHeader(unhex(test.frame)).Check(MinFrameSize); err != test.want {
			t.Errorf("%s: %v, want %v", test.frame, err, test.want)
		}
	}
}

func TestContent(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		h       Header
		p, want string
		err     error
	}{
		{Header{Type: FrameData}, "616263", "616263", nil},
		{Header{Type: FrameData, Flags: FlagPriority}, "616263", "616263", nil},
		{Header{Type: FrameData, Flags: FlagPadded}, "", "", errShort},
		{Header{Type: FrameData, Flags: FlagPadded}, "00", "", nil},
		{Header{Type: FrameData, Flags: FlagPadded}, "01", "", errPadding},
		{Header{Type: FrameData, Flags: FlagPadded}, "0100", "", nil},
		{Header{Type: FrameData, Flags: FlagPadded}, "02610000", "61", nil},
		{Header{Type: FrameData, Flags: FlagPadded}, "03610000", "", nil},
		{Header{Type: FrameData, Flags: FlagPadded}, "04610000", "", errPadding},
		{Header{Type: FrameHeaders, Flags: FlagPriority, Stream: 3}, "0000000010", "", nil},
		{Header{Type: FrameHeaders, Flags: FlagPriority, Stream: 3}, "000000001082", "82", nil},
		{Header{Type: FrameHeaders, Flags: FlagPriority, Stream: 3}, "80000003ff82", "82", errSelf},
		{Header{Type: FrameHeaders, Flags: FlagPriority, Stream: 3}, "00000000", "", errShort},
		{Header{Type: FrameHeaders, Flags: FlagPriority | FlagPadded, Stream: 3}, "01 0000000010 82 00", "82", nil},
		{Header{Type: FrameHeaders, Flags: FlagPriority | FlagPadded, Stream: 3}, "02 0000000010 00", "", errShort},
	} {
		got, err := test.h.Content(unhex(test.p))
		if err != test.err || fmt.Sprintf("%x", got) != test.want {
			t.Errorf("%v %s: %x, %v, want %s, %v", test.h, test.p, got, err, test.want, test.err)
		}
	}
	h := Header{Type: FramePriority, Stream: 3}
	if err := h.CheckPriority(unhex("0000000300")); err != errSelf {
		t.Error(err)
	}
	if err := h.CheckPriority(unhex("000000030000")); err != errPriority {
		t.Error(err)
	}
	if err := h.CheckPriority(unhex("0000000100")); err != nil {
		t.Error(err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		id    SettingID
		value uint32
		want  error
	}{
		{SettingEnablePush, 0, nil}, {SettingEnablePush, 1, nil}, {SettingEnablePush, 2, errSettingPush},
		{SettingInitialWindowSize, 0, nil}, {SettingInitialWindowSize, 1<<31 - 1, nil}, {SettingInitialWindowSize, 1 << 31, errSettingWindow},
		{SettingMaxFrameSize, 1<<14 - 1, errSettingFrame}, {SettingMaxFrameSize, 1 << 14, nil}, {SettingMaxFrameSize, 1<<24 - 1, nil},
		{SettingMaxFrameSize, 1 << 24, errSettingFrame}, {SettingHeaderTableSize, math.MaxUint32, nil}, {0x7777, 1, nil},
	} {
		s := DefaultSettings
		if err := s.Apply(AppendSettings(nil, Setting{test.id, test.value})[HeaderLen:]); err != test.want {
			t.Errorf("%v %d: %v, want %v", test.id, test.value, err, test.want)
		}
	}
	s := DefaultSettings
	s.Apply(AppendSettings(nil, Setting{SettingInitialWindowSize, 1}, Setting{SettingInitialWindowSize, 2})[HeaderLen:])
	if s.InitialWindow != 2 {
		t.Errorf("%+v", s)
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	w := Window(65535)
	if w.Take(65536) || !w.Take(65535) || w.Take(1) || !w.Take(0) {
		t.Error("Take")
	}
	if !w.Add(-65535) || w.Take(0) || !w.Add(65535) || !w.Take(0) {
		t.Error("a negative window")
	}
	if !w.Add(math.MaxInt32) || w.Add(1) || w != math.MaxInt32 {
		t.Error("overflow")
	}
	// Whatever is used is given back, and not for each byte.
	in := Inflow{Avail: 65535}
	updates, used := 0, 0
	for range 100_000 {
		if !in.Avail.Take(10) {
			t.Fatal("no window is left")
		}
		used += 10
		if n := in.Refund(10); n > 0 {
			updates++
			used -= int(n)
		}
	}
	if updates > 300 || int(in.Avail) != 65535-used || used != int(in.Unsent) {
		t.Errorf("%d updates, %+v", updates, in)
	}
}

func TestAppend(t *testing.T) {
	t.Parallel()
	var b []byte
	b = AppendSettings(b, Setting{SettingMaxFrameSize, 1 << 15})
	b = AppendSettingsAck(b)
	b = AppendPing(b, true, []byte("12345678"))
	b = AppendGoAway(b, 7, EnhanceYourCalm, "why")
	b = AppendRST(b, 5, Cancel)
	b = AppendWindowUpdate(b, 0, 9)
	b = AppendBlock(b, 3, []byte{0x82, 0x84}, 10, true)
	b = AppendBlock(b, 5, bytes.Repeat([]byte{0x82}, 25), 10, false)
	b = append(AppendHeader(b, FrameData, FlagEndStream, 5, len("data")), "data"...)
	fr := xhttp2.NewFramer(nil, bytes.NewReader(b))
	var got []string
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			break
		}
		got = append(got, fmt.Sprintf("%v", f.Header()))
	}
	want := `[[FrameHeader SETTINGS len=6] [FrameHeader SETTINGS flags=ACK len=0] [FrameHeader PING flags=ACK len=8] [FrameHeader GOAWAY len=11] [FrameHeader RST_STREAM stream=5 len=4] [FrameHeader WINDOW_UPDATE len=4] [FrameHeader HEADERS flags=END_STREAM|END_HEADERS stream=3 len=2] [FrameHeader HEADERS stream=5 len=10] [FrameHeader CONTINUATION stream=5 len=10] [FrameHeader CONTINUATION flags=END_HEADERS stream=5 len=5] [FrameHeader DATA flags=END_STREAM stream=5 len=4]]`
	if s := fmt.Sprint(got); s != want {
		t.Errorf("%s\nwant %s", s, want)
	}
}

// FuzzFrame compares the judgement of a frame with that of x/net's Framer.
func FuzzFrame(f *testing.F) {
	f.Add(unhex("000005 02 00 00000003 0000000310"))
	f.Add(unhex("000001 00 09 00000003 00"))
	f.Add(unhex("000006 01 2d 00000003 00 0000000010"))
	f.Add(unhex("000004 08 00 00000000 00000000"))
	f.Add(unhex("000006 04 00 00000000 0004ff303030"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < HeaderLen {
			return
		}
		h := ParseHeader(b)
		if int(h.Length) != len(b)-HeaderLen || h.Length > MinFrameSize || h.Type == FramePushPromise || h.Type == FrameContinuation || h.Type == 16 { // PRIORITY_UPDATE is unknown here
			return
		}
		err := judge(h, b[HeaderLen:])
		fr := xhttp2.NewFramer(nil, bytes.NewReader(b))
		_, xerr := fr.ReadFrame()
		var ce *ConnError
		var xc xhttp2.ConnectionError
		var xs xhttp2.StreamError
		switch {
		case err == nil && xerr == nil, err == errSelf: // which x/net's server looks at
		case errors.As(err, &ce) && errors.As(xerr, &xc): // a frame may have two errors
		case err == errPriority || h.Type == FrameWindowUpdate || h.Type == FrameHeaders:
			// x/net ends the connection, or only the stream, or says that the frame
			// was cut.
			if (err == nil) != (xerr == nil) {
				t.Errorf("%v: %v, x/net: %v", h, err, xerr)
			}
		case err != nil && errors.As(xerr, &xs):
		case err != nil && xerr != nil && h.Has(FlagPadded):
		case h.Type == FrameSettings && xerr != nil:
			// x/net's Framer judges some of the values.
			if s := DefaultSettings; s.Apply(b[HeaderLen:]) == nil {
				t.Errorf("%v, x/net: %v", h, xerr)
			}
		default:
			t.Errorf("%v: %v, x/net: %v", h, err, xerr)
		}
	})
}

func judge(h Header, p []byte) error {
	if err := h.Check(MinFrameSize); err != nil {
		return err
	}
	switch h.Type {
	case FrameData, FrameHeaders:
		_, err := h.Content(p)
		return err
	case FramePriority:
		return h.CheckPriority(p)
	case FrameWindowUpdate:
		_, err := h.Increment(p)
		return err
	}
	return nil
}
