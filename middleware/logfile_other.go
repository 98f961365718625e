//go:build !unix

package middleware

const logFlags = 0
