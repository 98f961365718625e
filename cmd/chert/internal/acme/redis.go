package acme

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/chert-http/chert/internal/redisconn"
	"github.com/redis/go-redis/v9"
)

// redisStorage keeps what certmagic does in a hash of Redis, so that instances share it: each
// certificate is ordered once, and any instance answers the challenges. Values are encrypted with
// AES-256-GCM, with their names as additional data: who reads Redis gets no keys, and who writes it
// cannot exchange them. What was read or written is also in the folder, from which certificates
// are read while Redis is away.
type redisStorage struct {
	client redis.UniversalClient
	where  string
	seal   cipher.AEAD
	folder *certmagic.FileStorage

	mu    sync.Mutex
	locks map[string]lock
}

// lock is one that this process has.
type lock struct {
	token string
	stop  func()
}

var _ certmagic.Storage = (*redisStorage)(nil)

const (
	filesKey  = "chert:{acme}:files"
	locksKey  = "chert:{acme}:lock:"
	storeTime = 5 * time.Second
	// lockTime is how long a lock is kept that its owner, which has died, does not renew.
	lockTime = 30 * time.Second
	lockPoll = 500 * time.Millisecond
	// existsTries and existsPause are longer than connections to a server that is there fail.
	existsTries = 4
	existsPause = 100 * time.Millisecond
)

func newRedisStorage(url string, key [32]byte, folder string) (*redisStorage, error) {
	client, where, err := redisconn.Open(url, storeTime, 0)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &redisStorage{client: client, where: where, seal: seal, folder: &certmagic.FileStorage{Path: folder},
		locks: make(map[string]lock)}, nil
}

func (s *redisStorage) explain(err error) error { return redisconn.Explain(err, s.where, storeTime) }

func within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, storeTime)
}

// encrypt returns a value as it is stored: when it was, a nonce, and what the seal makes of it.
func (s *redisStorage) encrypt(name string, value []byte) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano()))
	nonce := make([]byte, s.seal.NonceSize())
	rand.Read(nonce) // never fails
	return s.seal.Seal(append(b, nonce...), nonce, value, append([]byte(name), b...))
}

func (s *redisStorage) decrypt(name, stored string) (value []byte, modified time.Time, err error) {
	b, n := []byte(stored), 8+s.seal.NonceSize()
	if len(b) < n {
		return nil, modified, fmt.Errorf("%s: it is not what chert has stored", name)
	}
	value, err = s.seal.Open(nil, b[8:n], b[n:], append([]byte(name), b[:8]...))
	if err != nil {
		return nil, modified, fmt.Errorf("%s: it was encrypted with another secret, or has been changed", name)
	}
	return value, time.Unix(0, int64(binary.BigEndian.Uint64(b))), nil
}

// Store implements certmagic.Storage.
func (s *redisStorage) Store(ctx context.Context, name string, value []byte) error {
	ctx, cancel := within(ctx)
	defer cancel()
	if err := s.client.HSet(ctx, filesKey, name, s.encrypt(name, value)).Err(); err != nil {
		return s.explain(err)
	}
	s.folder.Store(ctx, name, value) // an error, as of a full disk, is no matter as long as Redis is there
	return nil
}

// Load implements certmagic.Storage.
func (s *redisStorage) Load(ctx context.Context, name string) ([]byte, error) {
	value, _, err := s.get(ctx, name)
	if err == nil {
		if old, err := s.folder.Load(ctx, name); err != nil || !slices.Equal(old, value) {
			s.folder.Store(ctx, name, value) // an error is no matter as long as Redis is there
		}
		return value, nil
	}
	if errors.Is(err, errAway) {
		if value, other := s.folder.Load(ctx, name); other == nil {
			return value, nil
		}
	}
	return nil, err
}

// errAway is wrapped by errors of a Redis that does not respond.
var errAway = errors.New("certificates")

func (s *redisStorage) get(ctx context.Context, name string) (value []byte, modified time.Time, err error) {
	ctx, cancel := within(ctx)
	defer cancel()
	stored, err := s.client.HGet(ctx, filesKey, name).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, modified, fs.ErrNotExist
	case err != nil:
		return nil, modified, fmt.Errorf("%w: %w", errAway, s.explain(err))
	}
	return s.decrypt(name, stored)
}

// names returns the names that are, or are below, one.
func (s *redisStorage) names(ctx context.Context, prefix string) ([]string, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	all, err := s.client.HKeys(ctx, filesKey).Result()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAway, s.explain(err))
	}
	slices.Sort(all)
	return slices.DeleteFunc(all, func(n string) bool {
		return prefix != "" && n != prefix && !strings.HasPrefix(n, prefix+"/")
	}), nil
}

// Delete implements certmagic.Storage.
func (s *redisStorage) Delete(ctx context.Context, name string) error {
	all, err := s.names(ctx, name)
	if err != nil {
		return err
	}
	ctx, cancel := within(ctx)
	defer cancel()
	if len(all) > 0 {
		if err := s.client.HDel(ctx, filesKey, all...).Err(); err != nil {
			return s.explain(err)
		}
	}
	return s.folder.Delete(ctx, name)
}

// Exists implements certmagic.Storage. What it denies is ordered, although another instance may have
// it, so one command that fails is not enough for that.
func (s *redisStorage) Exists(ctx context.Context, name string) bool {
	all, err := s.names(ctx, name)
	for try := 1; err != nil && try < existsTries; try++ {
		select {
		case <-time.After(existsPause):
			all, err = s.names(ctx, name)
		case <-ctx.Done():
			return true // nothing is to be done any more
		}
	}
	if err != nil {
		return s.folder.Exists(ctx, name)
	}
	return len(all) > 0
}

// List implements certmagic.Storage.
func (s *redisStorage) List(ctx context.Context, prefix string, recursive bool) ([]string, error) {
	prefix = strings.Trim(prefix, "/")
	all, err := s.names(ctx, prefix)
	if err != nil {
		return s.folder.List(ctx, prefix, recursive)
	}
	seen := make(map[string]bool)
	var list []string
	add := func(n string) {
		if !seen[n] {
			seen[n] = true
			list = append(list, n)
		}
	}
	for _, n := range all {
		rest := strings.TrimPrefix(strings.TrimPrefix(n, prefix), "/")
		at := prefix
		for part := range strings.SplitSeq(rest, "/") {
			if at = path.Join(at, part); at != prefix {
				add(at)
			}
			if !recursive {
				break
			}
		}
	}
	if list == nil && prefix != "" {
		return nil, fs.ErrNotExist
	}
	return list, nil
}

// Stat implements certmagic.Storage.
func (s *redisStorage) Stat(ctx context.Context, name string) (certmagic.KeyInfo, error) {
	value, modified, err := s.get(ctx, name)
	switch {
	case err == nil:
		return certmagic.KeyInfo{Key: name, Modified: modified, Size: int64(len(value)), IsTerminal: true}, nil
	case errors.Is(err, errAway):
		return s.folder.Stat(ctx, name)
	case s.Exists(ctx, name):
		return certmagic.KeyInfo{Key: name}, nil
	}
	return certmagic.KeyInfo{}, err
}

const ifOwn = `return redis.call('GET', KEYS[1]) == ARGV[1] and `

// A lock is a key that expires. Its owner renews it, and removes it only while it is its own.
var (
	renewLock  = redis.NewScript(ifOwn + `redis.call('PEXPIRE', KEYS[1], ARGV[2])`)
	removeLock = redis.NewScript(ifOwn + `redis.call('DEL', KEYS[1])`)
)

// Lock implements certmagic.Storage.
func (s *redisStorage) Lock(ctx context.Context, name string) error {
	var random [16]byte
	rand.Read(random[:]) // never fails
	token := hex.EncodeToString(random[:])
	for {
		got, err := s.tryLock(ctx, name, token)
		if err != nil {
			return s.explain(err)
		}
		if got {
			s.keep(name, token)
			return nil
		}
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *redisStorage) tryLock(ctx context.Context, name, token string) (bool, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	return s.client.SetNX(ctx, locksKey+name, token, lockTime).Result()
}

// keep renews a lock until Unlock.
func (s *redisStorage) keep(name, token string) {
	ctx, cancel := context.WithCancel(context.Background())
	s.mu.Lock()
	s.locks[name] = lock{token, cancel}
	s.mu.Unlock()
	go func() {
		t := time.NewTicker(lockTime / 3)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				one, cancel := within(ctx)
				// An error is repaired by the next.
				renewLock.Run(one, s.client, []string{locksKey + name}, token, lockTime.Milliseconds())
				cancel()
			case <-ctx.Done():
				return
			}
		}
	}()
}

// Unlock implements certmagic.Storage.
func (s *redisStorage) Unlock(ctx context.Context, name string) error {
	s.mu.Lock()
	l, ok := s.locks[name]
	delete(s.locks, name)
	s.mu.Unlock()
	if !ok {
		return nil
	}
	l.stop()
	ctx, cancel := within(ctx)
	defer cancel()
	if err := removeLock.Run(ctx, s.client, []string{locksKey + name}, l.token).Err(); err != nil &&
		!errors.Is(err, redis.Nil) {
		return s.explain(err)
	}
	return nil
}
