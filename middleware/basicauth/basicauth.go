package basicauth

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/internal/view"
	"github.com/chert-http/chert/middleware/internal/wrap"
	"golang.org/x/crypto/bcrypt"
)

// Options are the options of New.
type Options struct {
	// Users are hashes by name, of bcrypt, as Hash makes them, or of Argon2id, as
	// HashArgon2id does. Without Lookup there must be at least one. The map must not be
	// changed afterwards.
	Users map[string]string
	// Lookup, if not nil, is called instead, concurrently. It may block.
	Lookup func(name string) (hash string, ok bool)
	// Realm is sent in WWW-Authenticate, and must be printable ASCII. Default
	// "restricted".
	Realm string
	// CacheSize is how many verified credentials are remembered, so that bcrypt,
	// which takes some 50 ms on purpose, is not done for each request. Default 1024;
	// negative: none.
	CacheSize int
	// CacheFor is how long they are remembered. Default 5 minutes; negative: not at
	// all. A password that Lookup no longer knows is accepted for that long.
	CacheFor time.Duration
	// Parallel is how many hashes are computed at a time. Default half of GOMAXPROCS,
	// at least one; negative: no limit. Each keeps a core busy: without a limit, a
	// client that guesses passwords can use all of them.
	Parallel int
	// Queue is how many requests may wait for that; others get 503.
	// Default 64; negative: none. All that leave both at 0 share one limit and one queue.
	Queue int
	// Cost is what an unknown name costs if Lookup is used, and should be that of the
	// hashes. Default bcrypt.DefaultCost; negative, like all that is not from
	// bcrypt.MinCost to bcrypt.MaxCost, is an error: without a cost the time would
	// reveal which names exist.
	Cost int
	// Like is a hash whose cost unknown names have if Lookup is used, in place of Cost: for
	// hashes of Argon2id.
	Like string
}

type auth struct {
	o     Options
	cache cache
	slots *wrap.Slots // of Parallel; nil without a limit
	dummy []byte      // an unknown name is compared with this hash

	missing, several, busy *direct.Response
	compare                func(hash, password []byte) error // for tests
}

const (
	// maxPassword: bcrypt ignores the rest. RFC 7617 has no limit.
	maxPassword = 72
	// maxField is the longest value that is decoded, in bytes.
	maxField = 1024
)

// howToHash is in errors about hashes that are not valid.
const howToHash = "make one with basicauth.Hash, or with: htpasswd -nB NAME"

// Hash hashes a password for Options.Users or Options.Lookup: bcrypt with
// bcrypt.DefaultCost, which takes some 50 ms. It is an error if the password is
// empty, is longer than 72 bytes, since bcrypt ignores the rest, or has control
// characters, which no client could send (RFC 7617 section 2).
func Hash(password string) (string, error) {
	if err := checkPassword(password); err != nil {
		return "", fmt.Errorf("basicauth: Hash: %w", err)
	}
	if len(password) > maxPassword {
		return "", fmt.Errorf("basicauth: Hash: the password has %d bytes; bcrypt uses at most %d", len(password),
			maxPassword)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		return "", fmt.Errorf("basicauth: Hash: %w", err)
	}
	return string(hash), nil
}

func checkPassword(password string) error {
	switch {
	case password == "":
		return errors.New("the password is empty")
	case strings.ContainsFunc(password, isControl):
		return errors.New("the password has control characters, which no client could send")
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// checkUser returns the cost of a user's hash, 0 if it is of Argon2id.
func checkUser(name, hash string) (int, error) {
	if strings.ContainsFunc(name, func(r rune) bool { return r == ':' || isControl(r) }) {
		return 0, fmt.Errorf("the name %q could never be sent: a colon ends it, and it has no control characters", name)
	}
	if strings.HasPrefix(hash, argon2idPrefix) {
		if _, err := parseArgon2id(hash); err != nil {
			return 0, fmt.Errorf("the hash of %q is %w", name, err)
		}
		return 0, nil
	}
	cost, err := bcrypt.Cost([]byte(hash))
	if err != nil {
		// Its error may have a byte of what is no hash, but may be a password.
		return 0, fmt.Errorf("the hash of %q is not bcrypt's; %s", name, howToHash)
	}
	return cost, nil
}

// New returns middleware that admits requests with a name and its password;
// middleware.UserOf then returns the name. Others get 401, or 400 if they have
// several credentials. The time that takes does not reveal whether a name exists, if
// all hashes have the same cost. All handlers that it wraps share the cache.
//
// On the fast path, credentials that are remembered are admitted; others are
// verified on the ordinary path, since that takes long.
//
// New returns an error if there are neither Users nor Lookup, since every request would
// be refused, if a hash is of neither kind, if a name has a colon, which no client could
// send (RFC 7617 section 2), or if Cost, Like or Realm cannot be used.
func New(o *Options) (func(http.Handler) http.Handler, error) {
	if o == nil {
		o = &Options{}
	}
	a, err := newAuth(*o)
	if err != nil {
		return nil, err
	}
	return a.wrap, nil
}

func newAuth(o Options) (*auth, error) {
	if len(o.Users) == 0 && o.Lookup == nil {
		return nil, errors.New("basicauth: neither Users nor Lookup, so every request would be refused; " +
			"set Options.Users to hashes by name: " + howToHash)
	}
	if o.Cost != 0 && (o.Cost < bcrypt.MinCost || o.Cost > bcrypt.MaxCost) {
		return nil, fmt.Errorf("basicauth: Cost: %w", bcrypt.InvalidCostError(o.Cost))
	}
	slots := sharedSlots
	if o.Parallel != 0 || o.Queue != 0 {
		o.Queue = cmp.Or(o.Queue, defaultQueue)
		o.Parallel = cmp.Or(o.Parallel, defaultParallel())
		slots = o.ownSlots()
	}
	o.CacheSize = cmp.Or(o.CacheSize, 1024)
	o.Cost = cmp.Or(o.Cost, bcrypt.DefaultCost)
	o.CacheFor = cmp.Or(o.CacheFor, 5*time.Minute)
	a := &auth{o: o, slots: slots, compare: compare}
	var err error
	if a.dummy, err = o.unknown(); err != nil {
		return nil, err
	}
	a.cache.init(o.CacheSize, o.CacheFor)
	realm, err := wrap.QuoteRealm(o.Realm)
	if err != nil {
		return nil, fmt.Errorf("basicauth: Realm: %w", err)
	}
	// RFC 7617 section 2.1: charset is the encoding of names and passwords.
	challenge := "Basic realm=" + realm + `, charset="UTF-8"`
	a.missing = wrap.Refusal(http.StatusUnauthorized, "Www-Authenticate", challenge)
	a.several = wrap.Refusal(http.StatusBadRequest, "Www-Authenticate", challenge)
	a.busy = wrap.Refusal(http.StatusServiceUnavailable, "Retry-After", "1")
	return a, nil
}

// unknown returns the hash that a password for an unknown name is compared with: it costs as
// much as the most costly of Users.
func (o *Options) unknown() ([]byte, error) {
	users, cost := o.Users, bcrypt.MinCost
	if o.Like != "" {
		if _, err := checkUser("", o.Like); err != nil {
			return nil, errors.New("basicauth: Like is no hash")
		}
	}
	if o.Lookup != nil {
		users, cost = nil, o.Cost
		if o.Like != "" {
			users, cost = map[string]string{"": o.Like}, bcrypt.MinCost
		}
	}
	var most argon2id
	for name, hash := range users {
		c, err := checkUser(name, hash)
		if err != nil {
			return nil, fmt.Errorf("basicauth: Users: %w", err)
		}
		if a, err := parseArgon2id(hash); err == nil && a.cost() > most.cost() {
			most = a
		}
		cost = max(cost, c)
	}
	if most.cost() == 0 {
		return dummyHash(cost), nil
	}
	most.salt, most.sum = make([]byte, len(most.salt)), make([]byte, len(most.sum))
	rand.Read(most.salt)
	rand.Read(most.sum)
	return []byte(most.String()), nil
}

// ownSlots returns those of Parallel and Queue; nil without a limit.
func (o *Options) ownSlots() *wrap.Slots {
	if o.Parallel < 0 {
		return nil
	}
	return wrap.NewSlots(o.Parallel, o.Queue, 0)
}

const defaultQueue = 64

func defaultParallel() int { return max(runtime.GOMAXPROCS(0)/2, 1) }

// sharedSlots are of the process: a client that guesses passwords of many routes uses no more
// processors than one that guesses those of one. They are made here and not when they are needed, which
// may be in a bubble of testing/synctest.
var sharedSlots = wrap.NewSlots(defaultParallel(), defaultQueue, 0)

// bcryptEncoding is bcrypt's own.
var bcryptEncoding = base64.NewEncoding("./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789").
	WithPadding(base64.NoPadding)

// dummyHash returns what has the form of a hash, and costs as much to compare. Making a real one
// would cost that once: hours for the highest cost.
func dummyHash(cost int) []byte {
	salt, sum := make([]byte, 16), make([]byte, 23)
	rand.Read(salt)
	rand.Read(sum)
	text := bcryptEncoding.EncodeToString
	return fmt.Appendf(nil, "$2a$%02d$%s%s", cost, text(salt), text(sum))
}

// wrap is the middleware.
func (a *auth) wrap(next http.Handler) http.Handler {
	return filter.New(a.admit)(next)
}

func (a *auth) admit(r *filter.Call) filter.Outcome {
	value, n := r.Fields().First("Authorization")
	if n > 1 {
		return r.Refuse(a.several)
	}
	var buf [maxField]byte
	c, ok := parse(buf[:0], view.String(value))
	if !ok {
		return r.Refuse(a.missing)
	}
	key := a.cache.key(c)
	if name := a.cache.find(key); name != nil {
		r.SetUser(name)
		return filter.Pass
	}
	if r.Direct() {
		return filter.OnPlain // bcrypt takes long
	}
	name, refused := a.check(r.Context(), key, c)
	if refused != nil {
		return r.Refuse(refused)
	}
	r.SetUser(name)
	return filter.Pass
}

// check verifies credentials that the cache does not have. It returns the name or
// the refusal.
func (a *auth) check(ctx context.Context, key cacheKey, c credentials) (*string, *direct.Response) {
	if a.slots != nil {
		if !a.slots.Enter(ctx) {
			return nil, a.busy
		}
		defer a.slots.Leave()
	}
	// A request that was earlier in the queue may have had the same.
	if name := a.cache.find(key); name != nil {
		return name, nil
	}
	name := string(c.name())
	if !a.verify(name, c.password()) {
		return nil, a.missing
	}
	return a.cache.add(key, name), nil
}

// verify takes the same time whether the name exists or not.
func (a *auth) verify(name string, password []byte) bool {
	hash, known := a.o.Users[name]
	if a.o.Lookup != nil {
		hash, known = a.o.Lookup(name)
	}
	against := []byte(hash)
	if !known {
		against = a.dummy
	}
	err := a.compare(against, password)
	if known && err != nil && !errors.Is(err, bcrypt.ErrMismatchedHashAndPassword) {
		a.compare(a.dummy, password) // Lookup has returned an invalid hash
	}
	return known && err == nil
}

// credentials are "name:password".
type credentials struct {
	b     []byte
	colon int
}

func (c credentials) name() []byte     { return c.b[:c.colon] }
func (c credentials) password() []byte { return c.b[c.colon+1:] }

// parse decodes a field into buf:
//
//	credentials = "Basic" 1*SP token68
func parse(buf []byte, value string) (c credentials, ok bool) {
	const scheme = "basic "
	if len(value) <= len(scheme) || !strings.EqualFold(value[:len(scheme)], scheme) {
		return c, false
	}
	value = strings.TrimLeft(value[len(scheme):], " ")
	if base64.StdEncoding.DecodedLen(len(value)) > maxField {
		return c, false
	}
	n, err := base64.StdEncoding.Decode(buf[:cap(buf)], view.Bytes(value))
	if err != nil {
		return c, false
	}
	c.b, c.colon = buf[:n], -1
	for i, b := range c.b {
		// RFC 7617 section 2: neither MUST contain any control characters.
		if b < ' ' || b == 0x7f {
			return c, false
		}
		if b == ':' && c.colon < 0 {
			c.colon = i
		}
	}
	return c, c.colon >= 0
}
