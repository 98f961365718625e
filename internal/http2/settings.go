package http2

import (
	"encoding/binary"
	"math"
)

// SettingID names a setting (RFC 9113 section 6.5.2).
type SettingID uint16

const (
	SettingHeaderTableSize SettingID = iota + 1
	SettingEnablePush
	SettingMaxConcurrentStreams
	SettingInitialWindowSize
	SettingMaxFrameSize
	SettingMaxHeaderListSize
	// SettingEnableConnectProtocol is of RFC 8441 section 3, SettingNoPriorities of RFC
	// 9218 section 2.1.
	SettingEnableConnectProtocol SettingID = 8
	SettingNoPriorities          SettingID = 9
)

// Setting is one setting and its value.
type Setting struct {
	ID    SettingID
	Value uint32
}

// Settings are what a client has said that matters to a server. The last value of
// each is what counts.
type Settings struct {
	InitialWindow uint32
	NoPriorities  bool // it does not use the priorities of RFC 7540
	// LeastTable is the smallest table of HPACK that it has allowed so far.
	LeastTable uint32
}

// DefaultSettings are those of a client that has said nothing.
var DefaultSettings = Settings{InitialWindow: 65535, LeastTable: DefaultTableSize}

var (
	errSettingPush   = &ConnError{ProtocolError, "SETTINGS_ENABLE_PUSH is neither 0 nor 1"}
	errSettingWindow = &ConnError{FlowControlError, "SETTINGS_INITIAL_WINDOW_SIZE is too large"}
	errSettingNoPrio = &ConnError{ProtocolError, "SETTINGS_NO_RFC7540_PRIORITIES is neither 0 nor 1"}
	errSettingFrame  = &ConnError{ProtocolError, "SETTINGS_MAX_FRAME_SIZE is out of its range"}
)

// Apply takes over the payload of a SETTINGS frame whose header has been checked.
func (s *Settings) Apply(p []byte) error {
	for ; len(p) >= 6; p = p[6:] {
		v := binary.BigEndian.Uint32(p[2:])
		switch SettingID(binary.BigEndian.Uint16(p)) {
		case SettingHeaderTableSize:
			s.LeastTable = min(s.LeastTable, v)
		case SettingEnablePush:
			if v > 1 {
				return errSettingPush
			}
		case SettingNoPriorities:
			if v > 1 {
				return errSettingNoPrio
			}
			s.NoPriorities = v == 1
		case SettingInitialWindowSize:
			if v > math.MaxInt32 {
				return errSettingWindow
			}
			s.InitialWindow = v
		case SettingMaxFrameSize:
			if v < MinFrameSize || v > MaxFrameSize {
				return errSettingFrame
			}
		}
	}
	return nil
}

// AppendSettings appends a SETTINGS frame.
func AppendSettings(b []byte, all ...Setting) []byte {
	b = AppendHeader(b, FrameSettings, 0, 0, 6*len(all))
	for _, s := range all {
		b = binary.BigEndian.AppendUint16(b, uint16(s.ID))
		b = binary.BigEndian.AppendUint32(b, s.Value)
	}
	return b
}

// AppendSettingsAck appends what acknowledges SETTINGS.
func AppendSettingsAck(b []byte) []byte { return AppendHeader(b, FrameSettings, FlagAck, 0, 0) }

// Window is a flow-control window: how many bytes may be sent (RFC 9113 section
// 5.2). A change of SETTINGS_INITIAL_WINDOW_SIZE may make it negative.
type Window int32

// Add makes the window larger, or smaller. It reports false, and does nothing, if it
// would be larger than a window can be.
func (w *Window) Add(n int64) bool {
	sum := int64(*w) + n
	if sum > math.MaxInt32 || sum < math.MinInt32 {
		return false
	}
	*w = Window(sum)
	return true
}

// Take makes the window smaller by n, if it has so much.
func (w *Window) Take(n uint32) bool {
	if int64(n) > int64(*w) {
		return false
	}
	*w -= Window(n)
	return true
}

// Inflow is the receiver's side of a window: what the peer may still send, and what
// it has sent that was used up and not told to it.
type Inflow struct {
	Avail  Window
	Unsent uint32 // consumed, not yet given back
}

// Refund notes that n bytes have been used up, and returns what a WINDOW_UPDATE is
// to give back now: 0 while that is little, and what is left is enough to go on.
func (f *Inflow) Refund(n uint32) uint32 {
	f.Unsent += n
	const least = 32 << 10
	if f.Unsent == 0 || f.Unsent < least && int64(f.Unsent) < int64(f.Avail) {
		return 0
	}
	back := f.Unsent
	f.Unsent = 0
	f.Avail += Window(back)
	return back
}
