package vhost

import (
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want, err string }{
		{"example.com", "example.com", ""},
		{"EXAMPLE.com.", "example.com", ""},
		{"*.Example.com", "*.example.com", ""},
		{"*", "*", ""},
		{"localhost", "localhost", ""},
		{"a_b.example", "a_b.example", ""},
		{"192.0.2.1", "192.0.2.1", ""},
		{"::1", "::1", ""},
		{"[2001:DB8:0::1]", "2001:db8::1", ""},
		{"", "", "empty"},
		{"http://example.com", "", "not a URL"},
		{"example.com:80", "", "leave the port out"},
		{"[::1]:80", "", "leave the port out"},
		{"[::1", "", "not closed"},
		{"[::x]", "", "no IPv6 address"},
		{"fe80::1%eth0", "", "no IPv6 address"},
		{"[192.0.2.1]", "", "no IPv6 address"},
		{"www.*.com", "", "a * stands for"},
		{"w*.example.com", "", "a * stands for"},
		{"*.*.com", "", "a * stands for"},
		{"*.", "", "a * stands for"},
		{".example.com", "", "1 to 63 bytes"},
		{"a..b", "", "1 to 63 bytes"},
		{strings.Repeat("a", 64), "", "1 to 63 bytes"},
		{strings.Repeat("a.", 127) + "b", "", "longer than"},
		{"bücher.example", "", "xn--"},
		{"a b", "", "cannot be in"},
		{"a/b", "", "cannot be in"},
	} {
		got, err := Parse(tt.in)
		if tt.err == "" && (err != nil || string(got) != tt.want) {
			t.Errorf("%q: %q, %v, want %q", tt.in, got, err, tt.want)
		}
		if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%q: %q, %v, want an error with %q", tt.in, got, err, tt.err)
		}
	}
}

func table(t *testing.T, patterns ...string) *Table[string] {
	t.Helper()
	tab := new(Table[string])
	for _, s := range patterns {
		p, err := Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if !tab.Add(p, s) {
			t.Fatalf("%s is there already", s)
		}
	}
	return tab
}

func TestFind(t *testing.T) {
	t.Parallel()
	patterns := []string{"example.com", "*.example.com", "*.b.example.com", "www.example.com", "::1", "192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"}
	closed, open := table(t, patterns...), table(t, append(patterns, "*")...)
	for _, tt := range []struct{ host, want string }{
		{"example.com", "example.com"},
		{"example.com:8080", "example.com"},
		{"example.com:", "example.com"}, // RFC 3986 section 3.2.3: an empty port is none
		{"example.com.", "example.com"},
		{"example.com.:80", "example.com"},
		{"ExAmPlE.CoM", "example.com"},
		{"www.example.com", "www.example.com"}, // exact before *
		{"a.example.com", "*.example.com"},
		{"x.a.example.com", "*.example.com"}, // any depth
		{"b.example.com", "*.example.com"},   // *.b is below it
		{"x.b.example.com", "*.b.example.com"},
		{"y.x.B.example.com", "*.b.example.com"}, // the longest
		{"[::1]", "::1"},
		{"[::1]:80", "::1"},
		{"[0:0::1]", "::1"},
		{"[2001:DB8::0:1]:1", "2001:db8::1"},
		{"[::ffff:192.0.2.1]", "::ffff:192.0.2.1"},
		{"192.0.2.1:80", "192.0.2.1"},
		// No pattern:
		{"", ""},
		{".", ""},
		{":80", ""},
		{"com", ""},
		{"xexample.com", ""},
		{"example.com..", ""},
		{"example.com:x", ""},
		{"example.com:80:80", ""},
		{"::1", ""}, // not in brackets
		{"[::1", ""},
		{"[]", ""},
		{"[::1]x", ""},
		{"[::1]:x", ""},
		{"[::1%25lo]", ""},
		{"[192.0.2.1]", ""},
		{"*.example.org", ""},
		{"*", ""},
		{strings.Repeat("a", 1000), ""},
		{"[" + strings.Repeat(":", 1000) + "]", ""},
		{strings.Repeat("a.", 200) + "example.com", ""}, // longer than a name can be
	} {
		for _, tab := range []*Table[string]{closed, open} {
			want := tt.want
			if want == "" && tab == open {
				want = "*"
			}
			got, ok := Find(tab, tt.host)
			bytes, _ := Find(tab, []byte(tt.host))
			if got != want || bytes != want || ok != (want != "") {
				t.Errorf("%.50q: %q, %q, %v; want %q", tt.host, got, bytes, ok, want)
			}
		}
	}
}

// The literal * of a request is not the pattern.
func TestFindStar(t *testing.T) {
	t.Parallel()
	if got, ok := Find(table(t, "*.example.com"), "*.example.com"); !ok || got != "*.example.com" {
		t.Errorf("%q %v", got, ok) // below example.com, like any label
	}
}

func TestAddTwice(t *testing.T) {
	t.Parallel()
	tab := table(t, "example.com", "*.example.com", "*")
	for _, s := range []string{"EXAMPLE.com.", "*.example.COM", "*"} {
		p, err := Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if tab.Add(p, "second") {
			t.Errorf("%s was added twice", s)
		}
	}
	if got, _ := Find(tab, "example.com"); got != "example.com" {
		t.Errorf("got %q", got)
	}
}

func TestFindAllocates(t *testing.T) {
	tab := table(t, "example.com", "*.example.org", "::1")
	for _, host := range []string{"Example.com:8080", "a.b.c.example.org.", "unknown.example", "[::1]:80", "[zz]", ""} {
		h := []byte(host)
		if n := testing.AllocsPerRun(100, func() { Find(tab, h); Find(tab, host) }); n != 0 {
			t.Errorf("%q: %v allocations", host, n)
		}
	}
}

// A host of many labels must not cost more than it is long.
func TestFindLong(t *testing.T) {
	t.Parallel()
	tab := table(t, "*.example.com")
	host := strings.Repeat("a.", 32<<10)
	done := make(chan bool)
	go func() {
		for range 1000 {
			Find(tab, host)
		}
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it takes too long")
	}
}

func FuzzFind(f *testing.F) {
	for _, s := range []string{"example.com:80", "[::1]:80", "a.example.com.", "[::ffff:1.2.3.4]"} {
		f.Add(s)
	}
	tab := new(Table[int])
	for i, s := range []string{"example.com", "*.example.com", "::1"} {
		p, _ := Parse(s)
		tab.Add(p, i)
	}
	f.Fuzz(func(t *testing.T, host string) {
		v, ok := Find(tab, host)
		again, ok2 := Find(tab, []byte(host))
		if v != again || ok != ok2 {
			t.Fatalf("%q: string %v %v, bytes %v %v", host, v, ok, again, ok2)
		}
		if name := Name(host); ok && name == "" {
			t.Fatalf("%q was found and has no name", host)
		}
	})
}
