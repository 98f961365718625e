package config

import (
	"testing"
)

func TestListenBlocks(t *testing.T) {
	t.Parallel()
	_, cfg, err := load(t, `
[[listen]]
address = ":443"
tls = true
protocols = ["h1", "h2"]
[[listen]]
address = ":444"
protocols = "h1"
[[listen]]
address = ":80"
tls = false
`+good+"tls_self = true\n")
	if err != nil {
		t.Fatal(err)
	}
	_, mixed, err := load(t, "listen = [':443', # TLS\n  { address = ':444', protocols = ['h1'] }, {address=':80',tls=false}]\n"+good+"tls_self = true\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Config{cfg, mixed} {
		for i, want := range []Listen{{Address: ":443"}, {Address: ":444", HTTP1: true}, {Address: ":80", Plain: true}} {
			got := c.Listen[i]
			if len(c.Listen) != 3 || got.Address != want.Address || got.Plain != want.Plain || got.HTTP1 != want.HTTP1 {
				t.Errorf("%d: %+v, want %+v", i, got, want)
			}
		}
	}
}
