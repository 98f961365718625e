package wire

import (
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"
)

func TestNow(t *testing.T) {
	t.Parallel()
	var x Exchange
	x.Reset(Request{Time: 17})
	if got := x.Now(); got != 17 {
		t.Errorf("got %v, not what the server said", got)
	}
	x.Reset(Request{})
	before := Clock()
	now := x.Now()
	if after := Clock(); now < before || now > after || now == 0 {
		t.Errorf("got %v, not between %v and %v", now, before, after)
	}
	if again := x.Now(); again != now {
		t.Errorf("got %v, then %v", now, again)
	}
	if got := ClockAt(time.Now()); got < now || got > Clock() {
		t.Errorf("ClockAt: got %v", got)
	}
}

// A reused exchange shows nothing of the one before, and does not keep it
// alive.
func TestResetForgets(t *testing.T) {
	t.Parallel()
	x := Exchange{
		req:     Request{Method: "GET", Target: []byte("/"), Path: []byte("/"), RawQuery: []byte("a"), Host: []byte("h"), Body: []byte("b"), RemoteAddr: "r", Fields: FieldsOf(http.Header{}), Time: 1, PeerIP: "r", Local: &net.TCPConn{}},
		pattern: "/", plain: new(http.Request), ready: NewResponse(200, nil, nil), file: File{Len: 1, Offset: 1, Check: func() error { return nil }},
		w: httptest.NewRecorder(), watcher: new(pair), server: remote{addr: "a"}, moved: true, limit: 1, plan: 1, elsewhere: true, missed: true,
	}
	x.SetStatus(404)
	x.SetPathValue("a", []byte("b"))
	x.SetHeader("A", "b")
	x.Keep(NewName("C"), "d")
	x.SetValue("k", "v")
	x.WriteString("body")
	x.Later(func(*Exchange) {})
	for v, i := reflect.ValueOf(x), 0; i < v.NumField(); i++ {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() && name != "digits" { // digits has no meaning by itself
			t.Fatalf("%s is new: the test must set it", name)
		}
	}
	values, fields, kept, own, edits := x.values, x.fields, x.outer.kept, x.outer.values, x.edits
	x.Reset(Request{})
	if values[0].name != "" || values[0].value != nil || fields[0] != (Field{}) || kept[0] != (Field{}) || own[0] != (value{}) || edits[0] != nil {
		t.Error("something is kept alive")
	}
	if len(x.values)+len(x.fields)+len(x.body)+len(x.outer.kept)+len(x.outer.values)+len(x.edits) > 0 {
		t.Error("something is left")
	}
	x.values, x.fields, x.body, x.outer.kept, x.outer.values, x.edits = nil, nil, nil, nil, nil, nil
	if !reflect.ValueOf(x).IsZero() {
		t.Errorf("left: %+v", x)
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	names := []string{"", "-", "--", "A", "a", "A-", "-A", "-a", "Content-Type", "Content-type", "content-Type", "CONTENT-TYPE", "X-1a", "X-1A", "Etag", "ETag", "A--B", "A b", "A:"}
	for c := range 256 {
		for _, around := range [][2]string{{"", ""}, {"", "a"}, {"A", ""}, {"A-", ""}, {"A-", "a-B"}, {"A", "-B"}} {
			names = append(names, around[0]+string([]byte{byte(c)})+around[1])
		}
	}
	for _, name := range names {
		want := validName(name) && http.CanonicalHeaderKey(name) == name
		if got := canonical(name); got != want {
			t.Errorf("%q: got %v", name, got)
		}
	}
}

func TestKeep(t *testing.T) {
	t.Parallel()
	name := NewName("x-a")
	var x Exchange
	x.Reset(Request{Method: "GET"})
	x.Keep(name, "1")
	x.Keep(name, "2")
	if got := x.Finish().Fields; !reflect.DeepEqual(got[1:], []Field{{"X-A", "1"}, {"X-A", "2"}}) {
		t.Errorf("got %v", got)
	}
	for _, bad := range []string{"", "a b", "connection", "content-length"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q is taken", bad)
				}
			}()
			NewName(bad)
		}()
	}
}

func TestFirst(t *testing.T) {
	t.Parallel()
	f := FieldsOf(http.Header{"A": {"1", "2"}, "Empty": {""}, "None": {}})
	{
		for _, tt := range []struct {
			name, want string
			n          int
			isNil      bool
		}{{"A", "1", 2, false}, {"a", "1", 2, false}, {"eMPTY", "", 1, false}, {"None", "", 0, true}, {"B", "", 0, true}} {
			if v, n := f.First(tt.name); string(v) != tt.want || n != tt.n || (v == nil) != tt.isNil {
				t.Errorf("%s: got %q, %d", tt.name, v, n)
			}
		}
	}
}
