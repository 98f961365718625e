package http3

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"

	"github.com/quic-go/quic-go"
)

// This file is connection IDs that tell which of several processes, that have followed each other,
// has the connection:
//
//	8 bytes, random | generation ^ m[0] | m[1:4]
//
// where m is the random bytes, encrypted. So the ID that a client chooses for its first packet, at
// random, is taken for one of these once in 2^24 times, if it has this length at all. That is what
// m is for, and not secrecy: a client can use an ID of any connection that it has, or had. The
// process that such a packet reaches knows no connection of that ID, and treats it as any other
// process would.

const (
	idLength = 12
	idRandom = 8
)

// idKey is the key of connection IDs. Processes that follow each other have the same.
type idKey [16]byte

// connIDs makes connection IDs of a generation, and recognises those of all. It is a
// quic.ConnectionIDGenerator, and safe for concurrent use.
type connIDs struct {
	generation byte
	block      cipher.Block
}

func newConnIDs(key *idKey, generation byte) *connIDs {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // of the key's length
	}
	return &connIDs{generation, block}
}

// GenerateConnectionID implements quic.ConnectionIDGenerator.
func (c *connIDs) GenerateConnectionID() (quic.ConnectionID, error) {
	var id [idLength]byte
	rand.Read(id[:idRandom])
	c.mark(id[idRandom:], id[:idRandom])
	id[idRandom] ^= c.generation
	return quic.ConnectionIDFromBytes(id[:]), nil
}

// ConnectionIDLen implements quic.ConnectionIDGenerator.
func (c *connIDs) ConnectionIDLen() int { return idLength }

// mark writes the bytes that follow random ones in an ID of generation 0.
func (c *connIDs) mark(to, random []byte) {
	var m [aes.BlockSize]byte
	copy(m[:], random)
	c.block.Encrypt(m[:], m[:])
	copy(to, m[:idLength-idRandom])
}

// of returns the generation of an ID, if it was made by a process with the same key.
func (c *connIDs) of(id []byte) (generation byte, ok bool) {
	if len(id) != idLength {
		return 0, false
	}
	var m [idLength - idRandom]byte
	c.mark(m[:], id[:idRandom])
	return id[idRandom] ^ m[0], [3]byte(id[idRandom+1:]) == [3]byte(m[1:])
}

// destination returns the connection ID that a packet is for, the first one if a datagram has
// several; nil if it is not a packet of QUIC, or is damaged.
func destination(packet []byte) []byte {
	const (
		long  = 0x80
		fixed = 0x40 // RFC 9000 section 17: without it a packet of version 1 must be discarded
		of    = 6    // in a long header: type, version, length
	)
	switch {
	case len(packet) == 0:
		return nil
	case packet[0]&long == 0:
		if packet[0]&fixed == 0 || len(packet) < 1+idLength {
			return nil
		}
		return packet[1 : 1+idLength]
	case len(packet) < of || len(packet) < of+int(packet[of-1]):
		return nil
	}
	return packet[of : of+int(packet[of-1])]
}
