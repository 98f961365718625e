package gobench

import (
	"slices"
	"testing"
)

const output = `goos: linux
cpu: some
BenchmarkComponents/parse-get/chert-2         	 1000000	       123.4 ns/op	       0 B/op	       0 allocs/op
BenchmarkComponents/router-static/std         	  500000	       400 ns/op	      16 B/op	       1 allocs/op
BenchmarkPlain-8	  500000	       7 ns/op
PASS
ok  	github.com/chert-http/chert/lab/components	2.345s
`

func TestParse(t *testing.T) {
	got, err := parse(output)
	want := []Bench{{"parse-get/chert", 123.4, 0, 0}, {"router-static/std", 400, 16, 1}, {"", 7, 0, 0}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}
