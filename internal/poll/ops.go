//go:build linux || darwin

package poll

import (
	"net"
	"os"

	"github.com/chert-http/chert/internal/sys"
)

// readinessOps are the operations of a readiness system: the plain calls.
type readinessOps struct{}

func (readinessOps) Accept(fd int) (int, string, sys.Errno)      { return sys.Accept(fd) }
func (readinessOps) Pending(fd int) bool                         { return sys.Pending(fd) }
func (readinessOps) Connect(to *sys.Remote) (int, sys.Errno)     { return sys.Connect(to) }
func (readinessOps) SocketError(fd int) sys.Errno                { return sys.SocketError(fd) }
func (readinessOps) Read(fd int, p []byte) (int, sys.Errno)      { return sys.Read(fd, p) }
func (readinessOps) Peek(fd int) (int, sys.Errno)                { return sys.Peek(fd) }
func (readinessOps) Write2(fd int, a, b []byte) (int, sys.Errno) { return sys.Write2(fd, a, b) }
func (readinessOps) WriteMore(fd int, p []byte) (int, sys.Errno) { return sys.WriteMore(fd, p) }
func (readinessOps) Sendfile(fd, file int, offset int64, n int) (int, sys.Errno) {
	return sys.Sendfile(fd, file, offset, n)
}
func (readinessOps) Queued(fd int) int { return sys.Queued(fd) }
func (readinessOps) CloseWrite(fd int) { sys.CloseWrite(fd) }
func (readinessOps) CloseBoth(fd int)  { sys.CloseBoth(fd) }
func (readinessOps) SetReset(fd int)   { sys.SetReset(fd) }
func (readinessOps) CloseFD(fd int)    { sys.Close(fd) }

func (readinessOps) Conn(fd int) (net.Conn, error) {
	dup, err := sys.Dup(fd)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(dup), "hijacked")
	defer f.Close() // FileConn has one of its own
	return net.FileConn(f)
}

func (readinessOps) Reserve() (int, error) { return sys.ReservePlace() }
