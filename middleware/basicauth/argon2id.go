package basicauth

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
)

// What Argon2id hashes may cost: a password that is tried takes at most about as long as with
// the highest cost of bcrypt that makes sense, and at most 128 MiB of memory.
const (
	maxMemory  = 128 << 10 // KiB
	maxTime    = 16
	maxThreads = 16
)

// argon2idPrefix begins the hashes.
const argon2idPrefix = "$argon2id$"

// An argon2id is a hash in the PHC string format, as of Argon2's own command:
// $argon2id$v=19$m=19456,t=2,p=1$SALT$HASH (RFC 9106).
type argon2id struct {
	memory, time uint32
	threads      uint8
	salt, sum    []byte
}

var errArgon2id = errors.New("not a hash of Argon2id, version 19, with at most m=131072, t=16 and p=16")

func parseArgon2id(hash string) (a argon2id, err error) {
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != "v=19" {
		return a, errArgon2id
	}
	var end string
	n, _ := fmt.Sscanf(parts[3]+" .", "m=%d,t=%d,p=%d %s", &a.memory, &a.time, &a.threads, &end)
	if n != 4 {
		return a, errArgon2id
	}
	b64 := base64.RawStdEncoding.Strict()
	var err1, err2 error
	a.salt, err1 = b64.DecodeString(parts[4])
	a.sum, err2 = b64.DecodeString(parts[5])
	// RFC 9106 section 3.1: m is at least 8 times p.
	if err1 != nil || err2 != nil || a.threads < 1 || a.threads > maxThreads || a.time < 1 || a.time > maxTime ||
		a.memory < 8*uint32(a.threads) || a.memory > maxMemory || len(a.salt) < 8 || len(a.salt) > 64 ||
		len(a.sum) < 16 || len(a.sum) > 64 || a.String() != hash { // Strict ignores line breaks
		return a, errArgon2id
	}
	return a, nil
}

func (a *argon2id) String() string {
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("%sv=19$m=%d,t=%d,p=%d$%s$%s", argon2idPrefix, a.memory, a.time, a.threads, b64(a.salt),
		b64(a.sum))
}

// cost is what a comparison takes, in KiB that are written.
func (a *argon2id) cost() uint64 { return uint64(a.memory) * uint64(a.time) }

func (a *argon2id) key(password []byte) []byte {
	return argon2.IDKey(password, a.salt, a.time, a.memory, a.threads, uint32(len(a.sum)))
}

// HashArgon2id hashes a password with Argon2id, 19 MiB of memory and two passes, which takes some
// 30 ms: the least that OWASP recommends. Errors are those of Hash, but for the length: it has
// no limit.
func HashArgon2id(password string) (string, error) {
	if err := checkPassword(password); err != nil {
		return "", fmt.Errorf("basicauth: HashArgon2id: %w", err)
	}
	a := argon2id{memory: 19 << 10, time: 2, threads: 1, salt: make([]byte, 16), sum: make([]byte, 32)}
	rand.Read(a.salt)
	a.sum = a.key([]byte(password))
	return a.String(), nil
}

// compare compares a password with a hash of either kind. bcrypt would ignore what follows its
// first 72 bytes.
func compare(hash, password []byte) error {
	if !strings.HasPrefix(string(hash), argon2idPrefix) {
		err := bcrypt.CompareHashAndPassword(hash, password[:min(len(password), maxPassword)])
		if err == nil && len(password) > maxPassword {
			err = bcrypt.ErrMismatchedHashAndPassword
		}
		return err
	}
	a, err := parseArgon2id(string(hash))
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare(a.key(password), a.sum) != 1 {
		return bcrypt.ErrMismatchedHashAndPassword
	}
	return nil
}
