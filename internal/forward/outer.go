package forward

import (
	"strings"

	"github.com/chert-http/chert/internal/http1"
)

// Outer is how a client has to name what a server names itself, below whose prefix the server is. It
// is immutable.
type Outer struct {
	Prefix string // that was cut off from the path, as Request.Prefix
	Host   string // that the client has asked for
}

// URI returns a URI of the server as the client has to use it.
func (o *Outer) URI(uri string) string {
	if strings.HasPrefix(uri, "/") && !strings.HasPrefix(uri, "//") {
		return o.Prefix + uri
	}
	for _, scheme := range []string{"http://", "https://", "//"} {
		rest, ok := strings.CutPrefix(uri, scheme+o.Host)
		if ok && (rest == "" || strings.IndexByte("/?#", rest[0]) >= 0) {
			return scheme + o.Host + o.Prefix + rest
		}
	}
	return uri
}

// Cookie is URI for the Path of a Set-Cookie.
func (o *Outer) Cookie(c string) string {
	parts := strings.Split(c, ";")
	for i := 1; i < len(parts); i++ {
		name, value, ok := strings.Cut(parts[i], "=")
		if value = strings.TrimSpace(value); ok && strings.EqualFold(strings.TrimSpace(name), "path") &&
			strings.HasPrefix(value, "/") {
			parts[i] = name + "=" + o.Prefix + strings.TrimSuffix(value, "/")
			if value != "/" {
				parts[i] = name + "=" + o.Prefix + value
			}
		}
	}
	return strings.Join(parts, ";")
}

// value returns what is passed on as the value of a field that is passed on.
func (m *response) value(f *http1.Field) []byte {
	v := f.Value.Bytes(m.head)
	if m.Outer == nil || m.r.Interim() {
		return v
	}
	switch f.ID {
	case http1.FieldLocation, http1.FieldContentLocation:
		if m.only(f.ID) {
			return []byte(m.Outer.URI(string(v)))
		}
	case http1.FieldSetCookie:
		return []byte(m.Outer.Cookie(string(v)))
	}
	return v
}

// only reports whether there is one field of the name: more than one Location says nothing.
func (m *response) only(id http1.FieldID) bool {
	n := 0
	for i := range m.r.Fields {
		if m.r.Fields[i].ID == id {
			n++
		}
	}
	return n == 1
}
