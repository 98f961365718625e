//go:build !unix && !windows

package main

import (
	"io/fs"
	"os/exec"
)

// These systems report such errors as text only; the general message must
// suffice.

func isAddrInUse(error) bool { return false }

func isAddrUnknown(error) bool { return false }

func isRefused(error) bool { return false }

func isBadName(error) bool { return false }

// groupOf returns -1: files have no group here.
func groupOf(fs.FileInfo) int { return -1 }

// identityOf returns nothing: no socket is inherited here.
func identityOf(fs.FileInfo) string { return "" }

func detach(*exec.Cmd) {}

// systemBrowser is a guess; $BROWSER names another.
func systemBrowser() []string { return []string{"xdg-open"} }
