package static

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/filename"
)

// A rule is a Rule that has been checked. Immutable.
type rule struct {
	filename.Pattern
	fields []wire.Field // canonical names
}

func newRule(r *Rule) (out rule, err error) {
	if out.Pattern, err = filename.ParsePattern(r.Match); err != nil {
		return out, err
	}
	for name, value := range r.Header {
		if err := wire.CheckField(name, value); err != nil {
			return out, fmt.Errorf("the field %q %w", name, err)
		}
		out.fields = append(out.fields, wire.Field{Name: http.CanonicalHeaderKey(name), Value: value})
	}
	slices.SortFunc(out.fields, func(a, b wire.Field) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// apply sets the fields of all rules for name for which may returns true; a nil
// may allows all.
func (c *config) apply(head http.Header, name string, may func(field string) bool) {
	for i := range c.rules {
		r := &c.rules[i]
		if !r.Match(name) {
			continue
		}
		for _, f := range r.fields {
			switch {
			case may != nil && !may(f.Name):
			case f.Value == "":
				delete(head, f.Name)
			default:
				head[f.Name] = []string{f.Value}
			}
		}
	}
}

// notContent is for responses without a file: a rule's statements about content
// do not apply to them.
func notContent(field string) bool {
	switch field {
	case "Etag", "Last-Modified", "Accept-Ranges":
		return false
	}
	return !strings.HasPrefix(field, "Content-") || field == "Content-Security-Policy" ||
		field == "Content-Security-Policy-Report-Only"
}

// notKept is for errors, which moreover must not be stored by a cache: the file
// may exist a moment later.
func notKept(field string) bool {
	return notContent(field) && field != "Cache-Control" && field != "Expires"
}

// immutable is the Cache-Control of files whose name changes with their content.
const immutable = "public, max-age=31536000, immutable"

// built are the types of files that build tools name after a hash.
var built = map[string]bool{
	"js": true, "mjs": true, "css": true, "map": true, "wasm": true,
	"woff": true, "woff2": true, "ttf": true, "otf": true, "eot": true,
	"svg": true, "png": true, "jpg": true, "jpeg": true, "gif": true, "webp": true, "avif": true, "ico": true,
}

// hasHash reports whether name, a last segment, is of a built file and has a
// hash in it, as build tools write them: app.3f9ac21b.js, index-B7xK2a9Q.css,
// chunk-5QYLBJ3C.js. In doubt it is not a hash: an extra request costs less than
// a wrong file for a year.
func hasHash(name string) bool {
	stem, kind, found := cutLast(name, '.')
	if !found || !built[kind] {
		return false
	}
	for {
		rest, part, found := cutLast(stem, '.')
		if !found {
			part = stem
		}
		// The beginning of a name alone is no hash.
		if found && isHash(part) || hashAtEnd(part) {
			return true
		}
		if !found {
			return false
		}
		stem = rest
	}
}

// hashAtEnd reports whether part ends in a dash or underscore and a hash. A
// hash in base64url may contain these itself.
func hashAtEnd(part string) bool {
	for i := len(part) - 9; i >= 0; i-- {
		if (part[i] == '-' || part[i] == '_') && isHash(part[i+1:]) {
			return true
		}
	}
	return false
}

// isHash reports whether s looks like one, and not like words and a number. It
// is hexadecimal; or of 8 to 32 characters of base64url with letters of both
// cases, and on average changes between these and digits every third character
// at least, beginnings of words not counted; or 8 of base32 with two digits.
func isHash(s string) bool {
	var lower, upper, digits, hex, base32, changes int
	last := ' '
	for _, c := range []byte(s) {
		kind := ' '
		switch {
		case 'a' <= c && c <= 'z':
			kind = 'a'
			lower++
			if c <= 'f' {
				hex++
			}
		case 'A' <= c && c <= 'Z':
			kind = 'A'
			upper++
			base32++
		case '0' <= c && c <= '9':
			kind = '0'
			digits++
			if '2' <= c && c <= '7' {
				base32++
			}
		case c != '-' && c != '_':
			return false
		}
		if kind != last && kind != ' ' && last != ' ' && (last != 'A' || kind != 'a') {
			changes++
		}
		last = kind
	}
	n := len(s)
	return n >= 8 && n <= 128 && scattered(s) && (hex+digits == n ||
		n <= 32 && lower > 0 && upper > 0 && lower+upper+digits >= n-2 && 3*changes >= n ||
		n == 8 && base32 == n && digits >= 2)
}

// scattered reports whether s has digits other than one number at its beginning
// or end, which names have that are dates, years or counts.
func scattered(s string) bool {
	const decimal = "0123456789"
	return strings.ContainsAny(strings.TrimLeft(s, decimal), decimal) &&
		strings.ContainsAny(strings.TrimRight(s, decimal), decimal)
}

// cutLast cuts s at the last sep.
func cutLast(s string, sep byte) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, sep); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}
