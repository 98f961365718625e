package middleware

import "github.com/chert-http/chert/internal/field"

// foldEqual reports whether b is s but for case.
func foldEqual[T []byte | string](b T, s string) bool { return field.EqualFold(b, s) }
