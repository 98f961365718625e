package bridge

import (
	"math/rand"
	"net/http"
	"strings"
	"testing"
)

// signatures are beginnings of what DetectContentType knows.
var signatures = []string{
	"<!DOCTYPE HTML>", "<html ", "<?xml", "%PDF-1", "%!PS-Adobe-", "\xfe\xff..", "\xff\xfe..", "\xef\xbb\xbf.", "\x00\x00\x01\x00",
	"BM", "GIF87a", "GIF89a", "RIFF\x01\x01\x01\x01WEBPVP", "\x89PNG\x0d\x0a\x1a\x0a", "\xff\xd8\xff", "FORM....AIFF", "ID3",
	"OggS\x00", "MThd\x00\x00\x00\x06", "RIFF....AVI ", "RIFF....WAVE", "\x1a\x45\xdf\xa3", "\x00\x01\x00\x00", "OTTO", "ttcf",
	"wOFF", "wOF2", "\x1f\x8b\x08", "PK\x03\x04", "Rar!\x1a\x07\x00", "\x00asm", "\x00\x00\x00\x18ftypmp42", ".snd", "true",
	"    ftypmp42", "aaaaftypmp4aaaaaaaaaaaaaaaa", strings.Repeat("\x00", 34) + "LP", strings.Repeat("a", 34) + "LP",
	"Hello, World!", `{"a":1}`, "[1]", "\xc3\xa9t\xc3\xa9", "é", "a\x1bb", "a\x0b", "", " ", "\n<html>", "L", strings.Repeat("x", 511) + "\x00\x00",
}

func FuzzContentType(f *testing.F) {
	for _, s := range signatures {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		if got, want := ContentType(p), http.DetectContentType(p); got != want {
			t.Errorf("%q is %s, want %s", p, got, want)
		}
	})
}

// Every change of one byte of a signature.
func TestContentType(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	for _, s := range signatures {
		for i := range s {
			for b := range 256 {
				p := []byte(s)
				p[i] = byte(b)
				for _, p := range [][]byte{p, p[:i+1], append(p, byte(rnd.Intn(256)), 'x')} {
					if got, want := ContentType(p), http.DetectContentType(p); got != want {
						t.Fatalf("%q is %s, want %s", p, got, want)
					}
				}
			}
		}
	}
}
