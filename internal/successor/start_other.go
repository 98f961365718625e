//go:build !linux && !darwin

package successor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
)

func start(program, []int) (*child, error) {
	return nil, fmt.Errorf("processes of %s cannot pass listening sockets to each other: %w", runtime.GOOS,
		errors.ErrUnsupported)
}

func (p *Process) inherit(string) error {
	return fmt.Errorf("%s: %w", controlVar, errors.ErrUnsupported)
}

// Pair needs a system on which processes can be replaced.
func Pair() (own *net.UnixConn, other int, err error) { return nil, -1, errors.ErrUnsupported }

func connOf(int) (net.Conn, error) { return nil, errors.ErrUnsupported }

func terminate(p *os.Process) { p.Kill() }

func isGone(error) bool { return false }

// Notify does nothing: no signal asks for an upgrade here.
func Notify(chan<- os.Signal) {}
