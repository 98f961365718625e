//go:build !linux && !darwin

package successor

import (
	"errors"
	"fmt"
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

func terminate(p *os.Process) { p.Kill() }

func isGone(error) bool { return false }

// Notify does nothing: no signal asks for an upgrade here.
func Notify(chan<- os.Signal) {}
