//go:build !unix

package main

import "io/fs"

// groupOf is -1: files have no group here.
func groupOf(fs.FileInfo) int { return -1 }
