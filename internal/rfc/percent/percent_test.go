package percent

import (
	"net/url"
	"testing"
)

// What is encoded is decoded to what it was, and nothing is encoded that need
// not be.
func TestAppend(t *testing.T) {
	t.Parallel()
	var all string
	for c := range 256 {
		all += string([]byte{byte(c)})
	}
	for name, keep := range map[string]*Set{"of": Of("-._~"), "but": But(`%"<>`)} {
		got := string(Append([]byte("x"), all, keep))
		if got, err := url.PathUnescape(got); err != nil || got != "x"+all {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		for i := range len(got) {
			if c := got[i]; c != '%' && !keep[c] {
				t.Errorf("%s: %q is not encoded", name, c)
			}
		}
	}
	if got := string(Append(nil, []byte("a-Z9 /\xff%"), Of("-"))); got != "a-Z9%20%2F%FF%25" {
		t.Errorf("got %q", got)
	}
	if got := string(Append(nil, " !~\x7f%\"", But(`"`))); got != "%20!~%7F%%22" {
		t.Errorf("got %q", got)
	}
}
