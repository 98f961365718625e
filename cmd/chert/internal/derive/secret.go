package derive

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"strconv"
	"time"
)

// Least is the least length of a secret, in bytes: 32 random characters.
const Least = 32

// A Secret is what instances share. The zero value is none.
type Secret string

// Check reports whether a secret is long enough.
func Check(s string) error {
	if len(s) < Least {
		return fmt.Errorf("it has %d characters; want %d at least, such as those of: openssl rand -base64 33", len(s),
			Least)
	}
	return nil
}

// Key returns a key of 32 bytes for a purpose (RFC 5869). Keys for different purposes say nothing
// of each other, nor of the secret.
func (s Secret) Key(purpose string) (key [32]byte) {
	b, err := hkdf.Key(sha256.New, []byte(s), nil, "chert "+purpose, len(key))
	if err != nil {
		panic("derive: " + err.Error()) // only for keys that are too long
	}
	copy(key[:], b)
	return key
}

// Period is how long tickets are encrypted with the same key.
const Period = 24 * time.Hour

// lifetime is for how many periods a ticket is valid: crypto/tls resumes no session that is
// older than a week.
const lifetime = 7

// PeriodOf returns the number of a moment's period.
func PeriodOf(now time.Time) int64 { return now.Unix() / int64(Period/time.Second) }

// TicketKeys returns the keys of a period: the first encrypts, all decrypt. The second is that of
// the next period, which an instance may use whose clock is ahead. Tickets of one scope are
// not valid in another.
func (s Secret) TicketKeys(scope string, period int64) [][32]byte {
	of := func(n int64) [32]byte { return s.Key("ticket " + strconv.FormatInt(n, 10) + " " + scope) }
	keys := [][32]byte{of(period), of(period + 1)}
	for n := int64(1); n <= lifetime; n++ {
		keys = append(keys, of(period-n))
	}
	return keys
}
