package proxyproto

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"
)

const (
	fixedV2 = 16 // bytes before the addresses
	typeCRC = 0x03
)

// parseV2 parses a header of version 2 (section 2.2). b begins as one, as far as it goes.
func parseV2(b []byte) (Header, int, error) {
	if len(b) > 12 && b[12]>>4 != 2 {
		return Header{}, 0, ErrMalformed
	}
	if len(b) > 12 && b[12]&15 > 1 { // neither LOCAL nor PROXY
		return Header{}, 0, ErrMalformed
	}
	// The family of LOCAL is ignored; of PROXY, values that are not defined are invalid.
	if len(b) > 13 && b[12]&15 == 1 && !defined(b[13]) {
		return Header{}, 0, ErrMalformed
	}
	if len(b) < fixedV2 {
		return Header{}, 0, nil
	}
	n := fixedV2 + int(binary.BigEndian.Uint16(b[14:]))
	if n > MaxHeader {
		return Header{}, 0, ErrTooLong
	}
	local := b[12]&15 == 0
	size := 0
	switch b[13] >> 4 {
	case 1:
		size = 12
	case 2:
		size = 36
	case 3:
		size = 216
	}
	if !local && n < fixedV2+size {
		return Header{}, 0, ErrMalformed
	}
	if len(b) < n {
		return Header{}, 0, nil
	}
	b = b[:n]
	if local {
		// The receiver must discard the block of addresses, whatever its family is.
		return Header{}, n, nil
	}
	if err := checkTLVs(b, fixedV2+size); err != nil {
		return Header{}, 0, err
	}
	if b[13]&15 != 1 { // not a stream
		return Header{}, n, nil
	}
	return addressesV2(b[fixedV2:], b[13]>>4), n, nil
}

// defined reports whether family is a family and transport of version 2: none, or a
// stream or datagrams of IPv4, IPv6 or unix sockets.
func defined(family byte) bool {
	transport := family & 15
	return family == 0 || family>>4 >= 1 && family>>4 <= 3 && (transport == 1 || transport == 2)
}

func addressesV2(b []byte, family byte) Header {
	var from, to netip.Addr
	switch family {
	case 1:
		from, to = netip.AddrFrom4([4]byte(b)), netip.AddrFrom4([4]byte(b[4:]))
		b = b[8:]
	case 2:
		from, to = netip.AddrFrom16([16]byte(b)).Unmap(), netip.AddrFrom16([16]byte(b[16:])).Unmap()
		b = b[32:]
	default:
		return Header{}
	}
	be := binary.BigEndian
	return Header{netip.AddrPortFrom(from, be.Uint16(b)), netip.AddrPortFrom(to, be.Uint16(b[2:]))}
}

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	noSum      = make([]byte, 4)
)

// checkTLVs checks the TLVs from at on, and the checksum of the whole header if they
// have one (section 2.2.3).
func checkTLVs(b []byte, at int) error {
	sum := -1
	for at < len(b) {
		if len(b)-at < 3 {
			return ErrMalformed
		}
		size := int(binary.BigEndian.Uint16(b[at+1:]))
		if size > len(b)-at-3 {
			return ErrMalformed
		}
		if b[at] == typeCRC {
			if size != 4 || sum >= 0 {
				return ErrMalformed
			}
			sum = at + 3
		}
		at += 3 + size
	}
	if sum < 0 {
		return nil
	}
	// It was computed with zeros in its place.
	c := crc32.Update(0, castagnoli, b[:sum])
	c = crc32.Update(c, castagnoli, noSum)
	c = crc32.Update(c, castagnoli, b[sum+4:])
	if c != binary.BigEndian.Uint32(b[sum:]) {
		return ErrChecksum
	}
	return nil
}
