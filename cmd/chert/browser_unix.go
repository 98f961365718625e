//go:build unix && !darwin

package main

func systemBrowser() []string { return []string{"xdg-open"} }
