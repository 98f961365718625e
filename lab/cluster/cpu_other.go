//go:build !linux

package main

import "time"

// exact is cpu: other systems have no clock of another process.
func (all servers) exact() time.Duration { return all.cpu() }
