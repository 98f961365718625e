package priority

import "testing"

// FuzzPriority: whatever a client writes, an urgency is one.
func FuzzPriority(f *testing.F) {
	for v, want := range map[string]Priority{
		"": {3, false}, "u=0": {0, false}, "u=7, i": {7, true}, "i;a=1 ,u=2": {2, true}, "i=?0": {3, false}, "i=?1,u=8": {3, true},
		// Those of quic-go's TestParsePriority.
		"i": {3, true}, "i=?1": {3, true}, "i=?0, u=4": {4, false}, "some=data;someparam;u=fake, u=1;foo, i;bar": {1, true},
		"u=1,i,u=5,i=?0": {5, false}, `u="ignored", i=1`: {3, false}, "u=8": {3, false},
		`a=(1 "two" ?1);x, b=:YWJj:, c=%"hello%20world", u=2`: {2, false}, `a="x;y";q=1, u=2`: {2, false},
		`future="x\",u=0,i", u=5`: {5, false}, `future=%"x\", u=5`: {5, false},
		// Quic-go's server takes the default of a field that is malformed anywhere. It is a hint: a member counts by itself.
		"u=0, bad=": {0, false}, `u=1,i, invalid="`: {1, true},
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
