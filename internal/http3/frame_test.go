package http3

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/priority"
)

// read is what a Reader makes of parts: each frame with as much of its payload as is there.
func read(all [][]byte) (got []string, within bool) {
	var r Reader
	for _, b := range all {
		for {
			part, n := r.Next(b)
			switch part {
			case PartHeader:
				got = append(got, fmt.Sprintf("%x %d ", uint64(r.Header().Type), r.Header().Length))
			case PartPayload:
				got[len(got)-1] += fmt.Sprintf("%x", b[:n])
			case PartNone:
				if n != len(b) {
					got = append(got, "bytes are left")
				}
			}
			if part == PartNone {
				break
			}
			b = b[n:]
		}
	}
	return got, r.Within()
}

func TestReader(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in, want string
		within   bool
	}{
		{"", "", false},
		{"0100", "1 0 ", false},
		{"0103 616263 0001 64", "1 3 616263|0 1 64", false},
		{"4001 8000 0003 616263", "1 3 616263", false}, // integers that are longer than they must be
		{"c000 0000 0000 0021 0000 00", "21 0 |0 0 ", false},
		{"800f0700 02 0031", "f0700 2 0031", false},
		{"00 ffffffffffffffff 61", "0 4611686018427387903 61", true},
		{"00", "", true},
		{"40", "", true},
		{"0080", "", true},
		{"000261", "0 2 61", true},
		{"0002 6162 01", "0 2 6162", true},
	} {
		b := unhex(test.in)
		for _, all := range [][][]byte{{b}, single(b)} {
			got, within := read(all)
			if strings.Join(got, "|") != test.want || within != test.within {
				t.Errorf("%s in %d parts: %q, %v", test.in, len(all), got, within)
			}
		}
	}
}

// FuzzReader: what is read does not depend on where the bytes are cut.
func FuzzReader(f *testing.F) {
	f.Add(unhex("01036162630001 64"), []byte{1, 2, 1})
	f.Add(unhex("800f0700024031c0000000000000210000"), []byte{3, 1, 9})
	f.Fuzz(func(t *testing.T, b, cuts []byte) {
		whole, within := read([][]byte{b})
		got, ends := read(parts(b, cuts))
		if !slices.Equal(got, whole) || ends != within {
			t.Fatalf("%x: %q, %v, want %q, %v", b, got, ends, whole, within)
		}
	})
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		h                Header
		request, control error
	}{
		{Header{FrameData, 1 << 60}, nil, errOnControl},
		{Header{FrameHeaders, 1 << 60}, nil, errOnControl},
		{Header{FrameCancelPush, 1}, errOnRequest, errNoPush},
		{Header{FrameSettings, 0}, errOnRequest, nil},
		{Header{FrameSettings, MaxControl}, errOnRequest, nil},
		{Header{FrameSettings, MaxControl + 1}, errOnRequest, errControlLarge},
		{Header{FramePushPromise, 5}, errPush, errOnControl},
		{Header{FrameGoAway, 0}, errOnRequest, errFrameSize},
		{Header{FrameGoAway, 1}, errOnRequest, nil},
		{Header{FrameGoAway, 8}, errOnRequest, nil},
		{Header{FrameGoAway, 9}, errOnRequest, errFrameSize},
		{Header{FrameMaxPushID, 8}, errOnRequest, nil},
		{Header{FrameMaxPushID, 9}, errOnRequest, errFrameSize},
		{Header{FramePriorityUpdate, MaxControl}, errOnRequest, nil},
		{Header{FramePriorityUpdate, MaxControl + 1}, errOnRequest, errControlLarge},
		{Header{FramePriorityUpdatePush, 3}, errOnRequest, errNoPush},
		{Header{0x2, 0}, errHTTP2Frame, errHTTP2Frame}, // PRIORITY
		{Header{0x6, 8}, errHTTP2Frame, errHTTP2Frame}, // PING
		{Header{0x8, 4}, errHTTP2Frame, errHTTP2Frame}, // WINDOW_UPDATE
		{Header{0x9, 1}, errHTTP2Frame, errHTTP2Frame}, // CONTINUATION
		{Header{0x21, 1 << 60}, nil, nil},              // RFC 9114 section 7.2.8
		{Header{0x1f*7 + 0x21, 0}, nil, nil},
		{Header{0xa, 0}, nil, nil},
		{Header{0xf0702, 1 << 60}, nil, nil},
		{Header{MaxVarint, MaxVarint}, nil, nil},
	} {
		if err := test.h.CheckRequest(); err != test.request {
			t.Errorf("%x on a request: %v, want %v", test.h, err, test.request)
		}
		if err := test.h.CheckControl(); err != test.control {
			t.Errorf("%x on the control stream: %v, want %v", test.h, err, test.control)
		}
		if ignored := !test.h.Known() && test.request == nil; ignored != (test.request == nil && test.control == nil) {
			t.Errorf("%x is known: %v", test.h, test.h.Known())
		}
	}
}

func TestAppendFrames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		got  []byte
		want string
	}{
		{AppendHeader(nil, FrameHeaders, 0), "0100"},
		{AppendHeader(nil, FrameData, 16384), "0080004000"},
		{AppendHeader(nil, FramePriorityUpdate, 64), "800f07004040"},
		{AppendGoAway(nil, 0), "070100"},
		{AppendGoAway(nil, 1<<62-4), "0708fffffffffffffffc"},
		{AppendSettings(nil), "0400"},
		{AppendSettings(nil, Setting{SettingMaxFieldSectionSize, 16384}, Setting{SettingDatagram, 1}), "0407 06 80004000 33 01"},
	} {
		if string(test.got) != string(unhex(test.want)) {
			t.Errorf("%x, want %s", test.got, test.want)
		}
	}
}

func TestParseID(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in   string
		want uint64
		err  error
	}{
		{"04", 4, nil}, {"4004", 4, nil}, {"fffffffffffffffc", 1<<62 - 4, nil},
		{"", 0, errFrameSize}, {"40", 0, errFrameSize}, {"0404", 0, errFrameSize},
	} {
		if v, err := ParseID(unhex(test.in)); v != test.want || err != test.err {
			t.Errorf("%s: %d, %v", test.in, v, err)
		}
	}
}

func TestParsePriorityUpdate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in     string
		stream uint64
		want   priority.Priority
		err    error
	}{
		{"\x08u=1, i", 8, priority.Priority{Urgency: 1, Incremental: true}, nil},
		{"\x40\x08", 8, priority.Default, nil},
		{"\x00\xff\x00", 0, priority.Default, nil},
		{"", 0, priority.Priority{}, errFrameSize},
		{"\x40", 0, priority.Priority{}, errFrameSize},
		{"\x09u=1", 0, priority.Priority{}, errUpdateStream}, // a server begins it
		{"\x02u=1", 0, priority.Priority{}, errUpdateStream}, // in one direction
	} {
		stream, p, err := ParsePriorityUpdate([]byte(test.in))
		if stream != test.stream || p != test.want || err != test.err {
			t.Errorf("%q: %d, %v, %v", test.in, stream, p, err)
		}
	}
}
