//go:build !linux

package measure

import (
	"errors"
	"time"
)

func processClock(int) (time.Duration, error) {
	return 0, errors.New("measuring needs Linux")
}
