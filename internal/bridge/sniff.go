package bridge

import "net/http"

// ContentType returns http.DetectContentType(p), sooner for most text: text that begins
// with a byte with which no signature does.
func ContentType(p []byte) string {
	if len(p) == 0 || sniffed[p[0]] {
		return http.DetectContentType(p)
	}
	for _, b := range p[:min(len(p), sniffLen)] {
		if binaryByte[b] {
			return http.DetectContentType(p)
		}
	}
	// Signatures that do not begin with the first byte: of MP4 and EOT.
	if len(p) >= 8 && string(p[4:8]) == "ftyp" || len(p) >= 36 && string(p[34:36]) == "LP" {
		return http.DetectContentType(p)
	}
	return "text/plain; charset=utf-8"
}

// sniffed are bytes with which a signature of DetectContentType may begin: those that
// are not text, white space, which some skip, and the first of each.
var sniffed = func() (t [256]bool) {
	for b := range t {
		t[b] = b <= ' ' || b >= 0x7f
	}
	for _, b := range []byte("<%GBRFMIO.tPwL") {
		t[b] = true
	}
	return t
}()

// binaryByte are the bytes that text does not have (mimesniff.spec.whatwg.org, binary
// data byte).
var binaryByte = func() (t [256]bool) {
	for b := range t {
		t[b] = b <= 0x08 || b == 0x0b || 0x0e <= b && b <= 0x1a || 0x1c <= b && b <= 0x1f
	}
	return t
}()
