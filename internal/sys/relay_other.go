//go:build !linux

package sys

import "syscall"

// HaveSplice is false: callers copy.
const HaveSplice = false

type pipe struct{}

const NoPipe Errno = syscall.EMFILE

func newPipe() (pipe, bool)             { return pipe{}, false }
func (pipe) close()                     {}
func (pipe) take(int, int) (int, Errno) { return 0, NoPipe }
func (pipe) give(int, int) (int, Errno) { return 0, NoPipe }

func Spliced() int64 { return 0 }

func CannotSplice(Errno) bool { return true }
