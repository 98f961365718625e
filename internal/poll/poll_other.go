//go:build !linux && !darwin

package poll

// New reports that this system has no poller.
func New() (Poller, error) { return nil, ErrUnsupported }
