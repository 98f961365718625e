package main

func systemBrowser() []string { return []string{"open"} }
