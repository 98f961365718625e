package acme

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
)

// folder is certmagic's storage in files. A lock that nothing holds any more ends there when it is old, but not one
// that is damaged, with which each attempt fails, or of a time to come, such as of a clock that was set back since.
type folder struct{ *certmagic.FileStorage }

const (
	// unheld is how long a lock stays as it is that no process holds: certmagic writes those every five seconds.
	unheld = 15 * time.Second
	// ahead is by how much the clock of another machine may differ that has the same folder.
	ahead = time.Minute
)

func (s folder) lockFile(name string) string {
	return filepath.Join(s.Path, "locks", certmagic.StorageKeys.Safe(name)+".lock")
}

// TryLock implements certmagic.TryLocker. It does not wait until it is known that no process holds a lock, so what is
// odd ends only if its file has not been written for long.
func (s folder) TryLock(ctx context.Context, name string) (bool, error) {
	file := s.lockFile(name)
	if before := odd(file); before != nil {
		if info, err := os.Stat(file); err == nil && time.Since(info.ModTime()).Abs() > unheld+ahead {
			removeSame(file, before)
		}
	}
	return s.FileStorage.TryLock(ctx, name)
}

// Lock implements certmagic.Storage.
func (s folder) Lock(ctx context.Context, name string) error {
	file := s.lockFile(name)
	if before := odd(file); before != nil {
		select {
		case <-time.After(unheld):
		case <-ctx.Done():
			return ctx.Err()
		}
		removeSame(file, before)
	}
	return s.FileStorage.Lock(ctx, name)
}

// removing is held from when a lock is compared until it is removed: those that wait for one wake together, and what
// the second would remove could be what the first has got meanwhile.
var removing sync.Mutex

// removeSame removes a lock that is as it was before.
func removeSame(file string, before []byte) {
	removing.Lock()
	defer removing.Unlock()
	if bytes.Equal(odd(file), before) {
		os.Remove(file) // if that fails, so does what follows, or waits
	}
}

// odd returns what a lock has if it is damaged or of a time to come, otherwise nil.
func odd(file string) []byte {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var lock struct{ Created, Updated time.Time }
	switch err := json.NewDecoder(bytes.NewReader(text)).Decode(&lock); {
	case errors.Is(err, io.EOF): // it is empty, which certmagic knows
		return nil
	case err != nil, time.Until(lock.Created) > ahead, time.Until(lock.Updated) > ahead:
		return text
	}
	return nil
}
