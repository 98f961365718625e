//go:build !linux && !darwin

package poll

import "sync/atomic"

// New reports that this system has no poller.
func New(*atomic.Bool) (Poller, error) { return nil, ErrUnsupported }
