package sys

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"time"
)

// Errno is a kernel error number; 0 is success. It is passed by value, never
// as an error, on the hot path.
type Errno = syscall.Errno

// ErrUnsupported is returned by functions that have no implementation on this system.
var ErrUnsupported = errors.New("sys: not supported on this system")

var epoch = time.Now()

// Nanotime is a monotonic clock in nanoseconds since an arbitrary point in
// this process's life. It never jumps when the wall clock is set.
func Nanotime() int64 { return int64(time.Since(epoch)) }

// SetEpoch sets when Nanotime is 0, for simulations with a clock of their own. It must be
// called before any other use of the clock.
func SetEpoch(t time.Time) { epoch = t }

// Epoch is when Nanotime was 0.
func Epoch() time.Time { return epoch }

// TemporaryAccept reports whether an accept that failed with e may be retried
// immediately: the connection died in the queue, or a signal arrived. Linux
// passes pending network errors of the new socket through accept (accept(2),
// "Error handling").
func TemporaryAccept(e Errno) bool {
	switch e {
	case syscall.EINTR, syscall.ECONNABORTED, syscall.EPROTO,
		syscall.ENETDOWN, syscall.ENOPROTOOPT, syscall.EHOSTDOWN,
		syscall.EHOSTUNREACH, syscall.EOPNOTSUPP, syscall.ENETUNREACH, syscall.EPERM:
		return true
	}
	return false
}

// NoFiles reports whether e means that the process or the system has no
// descriptor left.
func NoFiles(e Errno) bool { return e == syscall.EMFILE || e == syscall.ENFILE }

// Again reports whether e means that the call would have blocked.
func Again(e Errno) bool {
	return e == syscall.EAGAIN || e == syscall.EWOULDBLOCK
}

// appendIPPort appends "1.2.3.4:80" or "[::1]:80" as net.JoinHostPort would.
func appendIPPort(dst []byte, ip net.IP, zone string, port int) []byte {
	if v4 := ip.To4(); v4 != nil {
		for i, o := range v4 {
			if i > 0 {
				dst = append(dst, '.')
			}
			dst = strconv.AppendUint(dst, uint64(o), 10)
		}
	} else {
		dst = append(dst, '[')
		dst = append(dst, ip.String()...)
		if zone != "" {
			dst = append(dst, '%')
			dst = append(dst, zone...)
		}
		dst = append(dst, ']')
	}
	dst = append(dst, ':')
	return strconv.AppendInt(dst, int64(port), 10)
}
