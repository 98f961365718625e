//go:build !linux

// Command million needs Linux.
package main

func main() { panic("million needs Linux") }
