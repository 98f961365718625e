package http3

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// control is what a Control makes of parts, to the first error.
func control(all [][]byte) (got []string, err error) {
	var c Control
	for _, b := range all {
		for {
			h, payload, n, ok, err := c.Next(b)
			if err != nil {
				return got, err
			}
			if len(c.payload) > MaxControl {
				got = append(got, "too much is kept")
			}
			if b = b[n:]; !ok {
				if len(b) > 0 {
					got = append(got, "bytes are left")
				}
				break
			}
			got = append(got, fmt.Sprintf("%x %x", uint64(h.Type), payload))
		}
	}
	return got, nil
}

func TestControl(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in, want string
		err      error
	}{
		{"", "", nil},
		{"04", "", nil},
		{"0402", "", nil},
		{"0400", "4 ", nil},
		{"0402 0100 070104 0d0101", "4 0100|7 04|d 01", nil},
		{"0400 800f0700 05 08753d312c", "4 |f0700 08753d312c", nil},
		{"0400 21 03 616263 0d0105 c0000000000000ff 00 0d0106", "4 |d 05|d 06", nil}, // without a meaning
		{"0400 21 ffffffffffffffff 6162", "4 ", nil},
		{"070104", "", errNotFirst},
		{"2100", "", errNotFirst}, // though it would be passed over elsewhere
		{"0000", "", errNotFirst},
		{"0400 0400", "4 ", errSecond},
		{"0400 0000", "4 ", errOnControl},
		{"0400 0100", "4 ", errOnControl},
		{"0400 0500", "4 ", errOnControl},
		{"0400 0208", "4 ", errHTTP2Frame},
		{"0400 03 01 00", "4 ", errNoPush},
		{"0400 800f0701 01 00", "4 ", errNoPush},
		{"0400 0700", "4 ", errFrameSize},
		{"0400 0709", "4 ", errFrameSize},
		{"04 4401", "", errControlLarge}, // before any of it has come
		{"04 ffffffffffffffff", "", errControlLarge},
	} {
		b := unhex(test.in)
		for _, all := range [][][]byte{{b}, single(b)} {
			got, err := control(all)
			if strings.Join(got, "|") != test.want || err != test.err {
				t.Errorf("%s in %d parts: %q, %v", test.in, len(all), got, err)
			}
		}
	}
	// As large as it may be.
	b := append(AppendHeader(nil, FrameSettings, MaxControl), bytes.Repeat([]byte{0x21}, MaxControl)...)
	for _, all := range [][][]byte{{b}, single(b)} {
		if got, err := control(all); err != nil || len(got) != 1 || len(got[0]) != 2+2*MaxControl {
			t.Errorf("%d frames, %v", len(got), err)
		}
	}
}

// FuzzControl: what a control stream says does not depend on where its bytes are cut.
func FuzzControl(f *testing.F) {
	f.Add(unhex("04020100070104 0d0101"), []byte{1, 2, 1})
	f.Add(unhex("0400800f07000508753d312c21 03616263"), []byte{3, 1, 9})
	f.Fuzz(func(t *testing.T, b, cuts []byte) {
		whole, err := control([][]byte{b})
		got, errCut := control(parts(b, cuts))
		if !slices.Equal(got, whole) || errCut != err {
			t.Fatalf("%x: %q, %v, want %q, %v", b, got, errCut, whole, err)
		}
	})
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in   string
		want Settings
		err  error
	}{
		{"", DefaultSettings, nil},
		{"0180001000 0710 0680004000 0801 3301", Settings{16384, 4096, 16, true, true}, nil},
		{"0600", Settings{}, nil},
		{"0800 3300", DefaultSettings, nil},
		{"21ffffffffffffffff 4040c000000000000000", DefaultSettings, nil}, // without a meaning
		{"ffd277 08 01", DefaultSettings, errSettingShort},
		{"01", DefaultSettings, errSettingShort},
		{"0140", DefaultSettings, errSettingShort},
		{"40", DefaultSettings, errSettingShort},
		{"0001", DefaultSettings, errSettingHTTP2},
		{"0201", DefaultSettings, errSettingHTTP2},
		{"0301", DefaultSettings, errSettingHTTP2},
		{"0401", DefaultSettings, errSettingHTTP2},
		{"400501", DefaultSettings, errSettingHTTP2},
		{"0605 0605", DefaultSettings, errSettingTwice},
		{"2100 4006 05 c000000000000021 01", DefaultSettings, errSettingTwice}, // in two lengths
		{"0802", DefaultSettings, errSettingBool},
		{"3302", DefaultSettings, errSettingBool},
	} {
		s := DefaultSettings
		if err := s.Parse(unhex(test.in)); err != test.err || err == nil && s != test.want {
			t.Errorf("%s: %+v, %v", test.in, s, err)
		}
	}
	var many []byte
	for i := range uint64(maxSettings) {
		many = AppendVarint(AppendVarint(many, 0x1f*i+0x21), i)
	}
	s := DefaultSettings
	if err := s.Parse(many); err != nil {
		t.Error(err)
	}
	if err := s.Parse(append(many, 0x06, 0x01)); err != errSettingsMany {
		t.Error(err)
	}
}

// FuzzSettings: a payload is taken over whole or is an error of the connection, and what is
// taken over can be sent.
func FuzzSettings(f *testing.F) {
	f.Add(unhex("0180001000 0710 0680004000 0801 3301"))
	f.Add(unhex("06050605"))
	f.Fuzz(func(t *testing.T, p []byte) {
		s := DefaultSettings
		if err := s.Parse(p); err != nil {
			if _, ok := err.(*ConnError); !ok {
				t.Fatalf("%x: %v", p, err)
			}
			return
		}
		bit := map[bool]uint64{true: 1}
		b := AppendSettings(nil, Setting{SettingQPACKMaxTableCapacity, s.QPACKTable}, Setting{SettingQPACKBlockedStreams, s.QPACKBlocked},
			Setting{SettingMaxFieldSectionSize, s.MaxFieldSection}, Setting{SettingEnableConnectProtocol, bit[s.ExtendedConnect]},
			Setting{SettingDatagram, bit[s.Datagrams]})
		var c Control
		_, payload, n, ok, err := c.Next(b)
		got := DefaultSettings
		if !ok || err != nil || n != len(b) || got.Parse(payload) != nil || got != s {
			t.Fatalf("%x is %+v, and then %+v (%v)", p, s, got, err)
		}
	})
}
