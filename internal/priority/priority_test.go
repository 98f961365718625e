package priority

import "testing"

// FuzzPriority: whatever a client writes, an urgency is one.
func FuzzPriority(f *testing.F) {
	for v, want := range map[string]Priority{
		"": {3, false}, "u=0": {0, false}, "u=7, i": {7, true}, "i;a=1 ,u=2": {2, true}, "i=?0": {3, false}, "i=?1,u=8": {3, true},
		"u": {3, false}, "u=10": {3, false}, "U=1": {3, false}, "\tu=1": {1, false}, "x=\"u=1\"": {3, false},
	} {
		if got := Parse([]byte(v)); got != want {
			f.Errorf("%q is %v, want %v", v, got, want)
		}
		f.Add([]byte(v))
	}
	f.Fuzz(func(t *testing.T, v []byte) {
		if p := Parse(v); p.Urgency > 7 {
			t.Errorf("%q is %v", v, p)
		}
	})
}
