package field

import "testing"

func TestCheckSet(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, value string
		set, add    bool // there is no error
	}{
		{"X-A", "1", true, true},
		{"X-A", "", true, false},
		{"Content-Type", "a/b", true, false},
		{"content-type", "", false, false},
		{"Content-Encoding", "gzip", false, false},
		{"Transfer-Encoding", "chunked", false, false},
		{"X-A", "a\r\nb", false, false},
		{"X A", "1", false, false},
	} {
		if set, add := CheckSet(tt.name, tt.value) == nil, CheckAdd(tt.name, tt.value) == nil; set != tt.set || add != tt.add {
			t.Errorf("%q, %q: %v, %v", tt.name, tt.value, set, add)
		}
	}
}
