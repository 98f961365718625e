package config

import (
	"path/filepath"
	"strings"
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

// Sockets of all keys are relative to the folder of the file.
func TestSockets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ address, want string }{ // DIR stands for the folder
		{"unix:s", "unix:DIR/s"},
		{"unix:run/../s?mode=0660&group=g", "unix:DIR/s?mode=0660&group=g"},
		{"unix:@s", "unix:@s"},
		{"127.0.0.1:0", "127.0.0.1:0"},
	} {
		for _, key := range []string{"listen", "admin", "http_redirect"} {
			dir, cfg, err := load(t, key+" = '"+tt.address+"'\n"+good+"tls_self = true\n")
			if err != nil {
				t.Fatal(err)
			}
			got := cfg.Admin + cfg.HTTPRedirect
			if cfg.Listen != nil {
				got += cfg.Listen[0].Address
			}
			if got = strings.ReplaceAll(got, dir+string(filepath.Separator), "DIR/"); got != tt.want {
				t.Errorf("%s = %q: %q, want %q", key, tt.address, got, tt.want)
			}
		}
	}
}
