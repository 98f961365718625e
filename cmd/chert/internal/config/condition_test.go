package config

import "testing"

func TestConditionProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{`header = { "a b" = "*" }`, `9:12: header: "a b" is no name of a field`},
		{`header = { Host = "*" }`, `9:12: header: Host is not among the fields`},
		{`header = { A = 1 }`, `9:16: A wants a string, not a number`},
		{`header = {}`, `9:1: header is empty; want header = { NAME = "VALUE" }, or "*" for any value`},
		{`header = "A"`, `9:10: header wants a table, not a string`},
		{`cookie = { "a=b" = "*" }`, `9:12: cookie: "a=b" is no name of a cookie`},
		{`query = []`, `9:1: query wants a table, not a list`},
		{`from = "10.0.0"`, `9:8: from: "10.0.0": want an address, a prefix such as "10.0.0.0/8", "unix" or "all"`},
		{`from = []`, `9:1: from is empty, so that no client would be of it`},
	} {
		text := "[[site]]\nhosts = '*'\n[[site.route]]\npath = '/a'\nrespond = 204\n[[site.route]]\npath = '/a'\nredirect = '/x'\n" + tt.text + "\n"
		if got := problemsOf(t, text); len(got) != 1 || got[0] != tt.want {
			t.Errorf("%s: %q", tt.text, got)
		}
	}
	got := problemsOf(t, "[[site]]\nhosts = '*'\n[[site.route]]\npath = '/a'\nrespond = 204\nmethods = ['GET']\n[[site.route]]\npath = '/a'\nrespond = 200\nfrom = 'all'\n")
	want := `7:8: no route without a condition has the path "/a" and the same methods; want one, which says what other requests get`
	if len(got) != 1 || got[0] != want {
		t.Errorf("%q", got)
	}
}
