//go:build !unix

package main

import "os/exec"

func systemBrowser() []string { return []string{"rundll32", "url.dll,FileProtocolHandler"} }

func detach(*exec.Cmd) {}
