//go:build !linux && !darwin

package sys

import (
	"net"
	"syscall"
	"time"
)

// HavePoller is false: on this system every listener is served with a
// goroutine per connection, and nothing below is ever called.
const HavePoller = false

const unsupported = syscall.EINVAL

func Read(fd int, p []byte) (int, Errno)            { return 0, unsupported }
func Peek(fd int) (int, Errno)                      { return 0, unsupported }
func Write(fd int, p []byte) (int, Errno)           { return 0, unsupported }
func WriteMore(fd int, p []byte) (int, Errno)       { return 0, unsupported }
func Write2(fd int, a, b []byte) (int, Errno)       { return 0, unsupported }
func Accept(fd int) (nfd int, peer string, e Errno) { return -1, "", unsupported }
func Close(fd int) Errno                            { return unsupported }
func CloseWrite(fd int)                             {}
func CloseBoth(fd int)                              {}
func SetReset(fd int)                               {}
func Dup(fd int) (int, error)                       { return -1, ErrUnsupported }
func Monotonic() int64                              { return 0 }
func SetNonblock(fd int) error                      { return ErrUnsupported }
func CloseOnExec(fd int)                            {}
func IsListening(fd int) bool                       { return false }
func IsPackets(fd int) bool                         { return false }
func IsLocal(fd int) bool                           { return false }
func ReceiveBuffer(fd int) (int, error)             { return 0, ErrUnsupported }
func ReservePlace() (int, error)                    { return -1, ErrUnsupported }
func SetReusePort(fd int) error                     { return ErrUnsupported }
func TuneListener(fd int)                           {}
func SetLost(fd int, d time.Duration) error         { return ErrUnsupported }
func Pending(fd int) bool                           { return true }
func Queued(fd int) int                             { return 0 }
func LocalAddr(fd int) net.Addr                     { return nil }
func MaxFiles() int                                 { return 1 << 30 }
func RaiseFiles() error                             { return nil }

// FileLimits are unknown here.
type FileLimits struct{ Soft, Hard, NROpen, FileMax int }

func Limits() FileLimits          { return FileLimits{} }
func (FileLimits) Files() int     { return MaxFiles() }
func (FileLimits) String() string { return "no limit of open files" }

// HaveSendfile is false: callers copy.
const HaveSendfile = false

func Sendfile(dst, src int, offset int64, n int) (int, Errno) { return 0, unsupported }

func CannotSendfile(Errno) bool { return true }

// Remote is never made here.
type Remote struct{}

func NewRemote(network, address string) (*Remote, error) { return nil, ErrUnsupported }
func (*Remote) Addr() net.Addr                           { return nil }
func Connect(*Remote) (fd int, e Errno)                  { return -1, unsupported }
func SocketError(fd int) Errno                           { return unsupported }
func Hangup(fd int) bool                                 { return false }
