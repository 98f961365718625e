package http3

import "slices"

// SettingID names a setting.
type SettingID uint64

const (
	// SettingQPACKMaxTableCapacity and SettingQPACKBlockedStreams are of RFC 9204 section 5.
	SettingQPACKMaxTableCapacity SettingID = 0x1
	SettingQPACKBlockedStreams   SettingID = 0x7
	// SettingMaxFieldSectionSize is of RFC 9114 section 7.2.4.1.
	SettingMaxFieldSectionSize SettingID = 0x6
	// SettingEnableConnectProtocol is of RFC 9220 section 3, SettingDatagram of RFC 9297
	// section 2.1.1.
	SettingEnableConnectProtocol SettingID = 0x8
	SettingDatagram              SettingID = 0x33
)

// Setting is one setting and its value.
type Setting struct {
	ID    SettingID
	Value uint64
}

// Settings are what the peer has said that may matter.
type Settings struct {
	// MaxFieldSection is how large a field section may be, as pack.Limits.Bytes counts.
	MaxFieldSection            uint64
	QPACKTable, QPACKBlocked   uint64 // nothing comes of them: the encoder has no table
	ExtendedConnect, Datagrams bool
}

// DefaultSettings are those of a peer that has said nothing.
var DefaultSettings = Settings{MaxFieldSection: MaxVarint}

// maxSettings bounds the settings of a frame.
const maxSettings = 64

var (
	errSettingShort = &ConnError{FrameError, "SETTINGS end within a setting"}
	errSettingTwice = &ConnError{SettingsError, "a setting is there twice"}
	errSettingHTTP2 = &ConnError{SettingsError, "a setting of HTTP/2"}
	errSettingBool  = &ConnError{SettingsError, "a setting that is 0 or 1 is neither"}
	errSettingsMany = &ConnError{ExcessiveLoad, "too many settings"}
)

// Parse takes over the payload of a SETTINGS frame. Settings that are unknown are passed
// over (RFC 9114 section 7.2.4). An error is a ConnError.
func (s *Settings) Parse(p []byte) error {
	var seen [maxSettings]SettingID
	for count := 0; len(p) > 0; count++ {
		id, n := Varint(p)
		v, m := Varint(p[n:])
		if n == 0 || m == 0 {
			return errSettingShort
		}
		p = p[n+m:]
		// RFC 9114 section 7.2.4: a setting must not be there twice.
		if count == maxSettings {
			return errSettingsMany
		}
		if seen[count] = SettingID(id); slices.Contains(seen[:count], SettingID(id)) {
			return errSettingTwice
		}
		if err := s.set(Setting{SettingID(id), v}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Settings) set(one Setting) (err error) {
	switch one.ID {
	case 0x0, 0x2, 0x3, 0x4, 0x5:
		// RFC 9114 section 7.2.4.1 and 11.2.2: reserved, and an error of the connection.
		return errSettingHTTP2
	case SettingQPACKMaxTableCapacity:
		s.QPACKTable = one.Value
	case SettingQPACKBlockedStreams:
		s.QPACKBlocked = one.Value
	case SettingMaxFieldSectionSize:
		s.MaxFieldSection = one.Value
	case SettingEnableConnectProtocol:
		// RFC 8441 section 3, by RFC 9220.
		s.ExtendedConnect, err = one.bool()
	case SettingDatagram:
		// RFC 9297 section 2.1.1.
		s.Datagrams, err = one.bool()
	}
	return err
}

func (s Setting) bool() (bool, error) {
	if s.Value > 1 {
		return false, errSettingBool
	}
	return s.Value == 1, nil
}

// AppendSettings appends a SETTINGS frame.
func AppendSettings(b []byte, all ...Setting) []byte {
	n := 0
	for _, s := range all {
		n += VarintLen(uint64(s.ID)) + VarintLen(s.Value)
	}
	b = AppendHeader(b, FrameSettings, n)
	for _, s := range all {
		b = AppendVarint(AppendVarint(b, uint64(s.ID)), s.Value)
	}
	return b
}
