//go:build !unix

package main

func maxFiles() int { return 1 << 30 }
