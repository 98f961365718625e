package load

import (
	"strings"
	"testing"
)

const h2Output = `starting benchmark...
TLS Protocol: TLSv1.3
Application protocol: h2

finished in 1.00s, 1000.50 req/s, 6.81MB/s
requests: 1060 total, 1060 started, 1010 done, 990 succeeded, 15 failed, 5 errored, 0 timeout
status codes: 985 2xx, 5 3xx, 10 4xx, 0 5xx
traffic: 2.69KB (2755) total, 762B (762) headers (space savings 88.28%), 937B (937) data
`

func TestParseH2load(t *testing.T) {
	r, err := parseH2load(h2Output)
	if err != nil {
		t.Fatal(err)
	}
	if r.Requests != 990 || r.PerSecond != 1000.5 || r.Bytes != 2755 || r.Errors != (Errors{Status: 15, Read: 5}) {
		t.Errorf("%+v", r)
	}
	for _, other := range []string{
		strings.Replace(h2Output, "protocol: h2", "protocol: http/1.1", 1),
		strings.Replace(h2Output, "Application protocol: h2\n", "", 1),
		strings.Replace(h2Output, "5 errored", "five errored", 1),
	} {
		if r, err := parseH2load(other); err == nil {
			t.Errorf("%+v of\n%s", r, other)
		}
	}
}
