//go:debug http2client=1

package chert

import (
	"net/http"
	"os"
	"reflect"
	"syscall"
	"testing"
	"time"
)

// The server that a request's context shows has every field of ours.
func TestContextServerHasAllFields(t *testing.T) {
	t.Parallel()
	s := new(Server)
	v, typ := reflect.ValueOf(s).Elem(), reflect.TypeFor[http.Server]()
	for i := range typ.NumField() {
		f := typ.Field(i)
		if !f.IsExported() {
			continue
		}
		p := v.FieldByName(f.Name)
		if !p.IsValid() {
			t.Logf("net/http has %s, which is newer than go.mod's version of Go", f.Name)
			continue
		}
		switch f.Type.Kind() {
		case reflect.String:
			p.SetString("text")
		case reflect.Bool:
			p.SetBool(true)
		case reflect.Int, reflect.Int64:
			p.SetInt(int64(i + 1))
		case reflect.Pointer:
			p.Set(reflect.New(f.Type.Elem()))
		case reflect.Map:
			p.Set(reflect.MakeMap(f.Type))
		case reflect.Func:
			p.Set(reflect.MakeFunc(f.Type, func([]reflect.Value) []reflect.Value { panic("not called") }))
		case reflect.Interface:
			p.Set(reflect.ValueOf(http.NewServeMux()))
		default:
			t.Fatalf("%s is a %v", f.Name, f.Type)
		}
	}
	got := reflect.ValueOf(s.httpServer()).Elem()
	for i := range typ.NumField() {
		if f := typ.Field(i); f.IsExported() {
			a, b := v.FieldByName(f.Name), got.Field(i)
			if !a.IsValid() {
				continue
			}
			if f.Type.Kind() == reflect.Func || f.Type.Kind() == reflect.Map {
				if a.Pointer() != b.Pointer() {
					t.Errorf("%s is another", f.Name)
				}
			} else if a.Interface() != b.Interface() {
				t.Errorf("%s is %v, want %v", f.Name, b, a)
			}
		}
	}
}

// The least of the server's times that is set bounds the handshake, as with
// net/http.
func TestHandshakeTimeout(t *testing.T) {
	t.Parallel()
	for want, s := range map[time.Duration]*Server{
		10 * time.Second: {},
		time.Second:      {ReadHeaderTimeout: time.Second, ReadTimeout: 2 * time.Second},
		2 * time.Second:  {WriteTimeout: 2 * time.Second, ReadTimeout: time.Minute},
		3 * time.Second:  {ReadTimeout: 3 * time.Second, ReadHeaderTimeout: -1, WriteTimeout: -1},
		time.Minute:      {ReadTimeout: time.Minute},
	} {
		if got := s.handshakeTimeout(); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// GODEBUG is as net/http has it: what the environment says, and else the //go:debug lines, of which
// this file has one.
func TestDebugSetting(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ env, key, want string }{
		{"", "http2client", "1"},
		{"http2server=0", "http2client", "1"},
		{"http2client=0", "http2client", "0"},
		{"http2client=0,http2client=2", "http2client", "2"},
		{"panicnil=1,http2server=0,x", "http2server", "0"},
		{"http2server", "http2server", ""},
		{"xhttp2server=0", "http2server", ""},
		{"", "http2server", ""},
	} {
		if got := debugSetting(tt.env, tt.key); got != tt.want {
			t.Errorf("%q: %s is %q, want %q", tt.env, tt.key, got, tt.want)
		}
	}
}

// The second signal is a different one, or comes later than the duplicates of the first.
func TestStops(t *testing.T) {
	t.Parallel()
	at := time.Now()
	s := stops{now: func() time.Time { return at }}
	for i, tt := range []struct {
		sig    os.Signal
		after  time.Duration
		second bool
	}{
		{syscall.SIGTERM, 0, false}, {syscall.SIGTERM, 0, false}, {syscall.SIGTERM, sameSignal - 1, false},
		{os.Interrupt, 0, true}, {syscall.SIGTERM, 1, true},
	} {
		if at = at.Add(tt.after); s.second(tt.sig) != tt.second {
			t.Errorf("%d: %v after %v: %v", i, tt.sig, tt.after, !tt.second)
		}
	}
}
