//go:build linux || darwin

package poll

import "github.com/chert-http/chert/internal/sys"

// readinessOps are the operations of a readiness system: the plain calls.
type readinessOps struct{}

func (readinessOps) Accept(fd int) (int, string, sys.Errno)      { return sys.Accept(fd) }
func (readinessOps) Read(fd int, p []byte) (int, sys.Errno)      { return sys.Read(fd, p) }
func (readinessOps) Write2(fd int, a, b []byte) (int, sys.Errno) { return sys.Write2(fd, a, b) }
func (readinessOps) WriteMore(fd int, p []byte) (int, sys.Errno) { return sys.WriteMore(fd, p) }
func (readinessOps) CloseFD(fd int)                              { sys.Close(fd) }
