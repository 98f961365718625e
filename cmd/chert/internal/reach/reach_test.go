package reach

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for where, want := range map[string]string{
		"8080":                     "http://127.0.0.1:8080/",
		":8080":                    "http://127.0.0.1:8080/",
		"localhost:80":             "http://localhost:80/",
		"[::1]:80":                 "http://[::1]:80/",
		"http://h":                 "http://h/",
		"https://h/a?b=c#d":        "https://h/a?b=c",
		"https://user:secret@h/":   "https://user:xxxxx@h/",
		"unix:/run/a":              "unix:/run/a",
		"unix:":                    "want unix:/path",
		"localhost":                "has no port",
		"65536":                    "has no port",
		"ftp://h/":                 "is no address",
		"http:///path":             "is no address",
		"http://h:port/":           "is no address",
		"":                         "has no port",
		"http://h/\r\nHost: other": "is no address",
		"h:80/\x00":                "is no address",
	} {
		got, err := Parse(where)
		switch {
		case err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%q: %v, want %s", where, err, want)
		case err == nil && got.Name != want:
			t.Errorf("%q: %s, want %s", where, got.Name, want)
		case err == nil && (got.URL.Host == "" || got.URL.Scheme == "" || got.URL.Path == ""):
			t.Errorf("%q: %v is incomplete", where, got.URL)
		}
	}
	if got, _ := Parse("unix:/run/a"); got.Socket != "/run/a" || got.URL.String() != "http://localhost/" {
		t.Errorf("%+v", got)
	}
}
