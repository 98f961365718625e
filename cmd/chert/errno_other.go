//go:build !unix && !windows

package main

// These systems report such errors as text only; the general message has to do.

func isAddrInUse(error) bool { return false }

func isAddrUnknown(error) bool { return false }

func isRefused(error) bool { return false }

func isBadName(error) bool { return false }
