package view

import "unsafe"

// String returns b as a string. The caller must not keep it beyond the next write to b.
func String(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Bytes returns s as bytes, which must not be written to, neither by the caller nor by a
// function that it passes them to.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
