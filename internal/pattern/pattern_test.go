package pattern

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern string
		names   string
		rest    bool
		err     string
	}{
		{"/", "", false, ""}, // nameless
		{"/{$}", "", false, ""},
		{"GET h/{a}/b/{c...}", "a c", true, ""},
		{"/{a}/", "a", false, ""},
		{"/{a}/{b}", "a b", false, ""},
		{"/{a...}/b", "", false, "is not at the end"},
		{"/{a}/{a}", "", false, "there twice"},
		{"/:id", "", false, `:id`},
		{"x", "", false, "without a slash"},
	} {
		var names []string
		rest := false
		p, err := Parse(tt.pattern)
		if err == nil {
			names, rest = p.Wildcards()
		}
		if strings.Join(names, " ") != tt.names || rest != tt.rest || (err == nil) != (tt.err == "") ||
			err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %q %v %v", tt.pattern, names, rest, err)
		}
	}
}
