//go:build !linux

package uring

import "errors"

// Available says why there is no io_uring.
func Available() error { return errors.New("io_uring is Linux's") }
