package basicauth

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"
)

// usual has the form of what Argon2's own command prints.
const usual = "$argon2id$v=19$m=65536,t=2,p=4$c29tZXNhbHQ$GpZ3sK/oH9p7VIiV56G/64Zo/8GaUw434IimaPqxwCo"

const cheap = "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$"

func TestArgon2id(t *testing.T) {
	t.Parallel()
	if a, err := parseArgon2id(usual); err != nil || a.String() != usual {
		t.Fatalf("%v, %v", a, err)
	}
	hash, err := HashArgon2id("pässwort" + strings.Repeat("x", 100))
	if err != nil {
		t.Fatal(err)
	}
	wrapped, err := New(&Options{Users: map[string]string{"ann": hash, "bob": mustHash(t, "pw")}})
	if err != nil {
		t.Fatal(err)
	}
	h := wrapped(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for credentials, want := range map[string]int{
		"ann:pässwort" + strings.Repeat("x", 100): 200, "ann:pässwort" + strings.Repeat("x", 99): 401, "ann:": 401, "bob:pw": 200, "bob:pässwort": 401, "eve:pw": 401,
	} {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		r.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(credentials)))
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%.20s: %d, not %d", credentials, w.Code, want)
		}
	}
	for _, password := range []string{"", "a\n"} {
		if _, err := HashArgon2id(password); err == nil {
			t.Errorf("%q is hashed", password)
		}
	}
}

func mustHash(t *testing.T, password string) string {
	t.Helper()
	b, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Hashes that would take too long, or are none, are refused, without a part of them in the error.
func TestArgon2idMalformed(t *testing.T) {
	t.Parallel()
	sum := base64.RawStdEncoding.EncodeToString(make([]byte, 16))
	for _, hash := range []string{
		"$argon2id$", "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ", cheap, cheap + "AAAA", cheap + sum + "=", cheap + sum + "$", cheap + sum[:len(sum)-1] + "B",
		"$argon2id$v=16$m=8,t=1,p=1$c29tZXNhbHQ$" + sum, "$argon2id$v=19$m=131073,t=1,p=1$c29tZXNhbHQ$" + sum, "$argon2id$v=19$m=7,t=1,p=1$c29tZXNhbHQ$" + sum,
		"$argon2id$v=19$m=8,t=17,p=1$c29tZXNhbHQ$" + sum, "$argon2id$v=19$m=8,t=0,p=1$c29tZXNhbHQ$" + sum, "$argon2id$v=19$m=999,t=1,p=17$c29tZXNhbHQ$" + sum,
		"$argon2id$v=19$m=8,t=1,p=2$c29tZXNhbHQ$" + sum, "$argon2id$v=19$m=08,t=1,p=1$c29tZXNhbHQ$" + sum, "$argon2id$v=19$m=+8,t=1,p=1$c29tZXNhbHQ$" + sum,
		"$argon2id$v=19$t=1,m=8,p=1$c29tZXNhbHQ$" + sum, "$argon2id$v=19$m=8,t=1,p=1,x=2$c29tZXNhbHQ$" + sum, "$argon2id$v=19$m=8,t=1,p=1$c2Fs$" + sum,
		"$argon2id$v=19$m=4294967304,t=1,p=1$c29tZXNhbHQ$" + sum, "$argon2i$v=19$m=8,t=1,p=1$c29tZXNhbHQ$" + sum, "$argon2d$v=19$m=8,t=1,p=1$c29tZXNhbHQ$" + sum,
	} {
		_, err := New(&Options{Users: map[string]string{"ann": hash}})
		if err == nil || strings.Contains(err.Error(), "c29t") {
			t.Errorf("%s: %v", hash, err)
		}
		if _, err := New(&Options{Lookup: func(string) (string, bool) { return "", false }, Like: hash}); err == nil {
			t.Errorf("Like %s is accepted", hash)
		}
		if _, err := New(&Options{Users: map[string]string{"ann": cheap + sum}, Like: hash}); err == nil {
			t.Errorf("Like %s is accepted without Lookup", hash)
		}
	}
	if _, err := New(&Options{Users: map[string]string{"ann": cheap + sum}}); err != nil {
		t.Error(err)
	}
}

// An unknown name costs as much as the most costly hash that there is.
func TestArgon2idUnknownCosts(t *testing.T) {
	t.Parallel()
	sum := base64.RawStdEncoding.EncodeToString(make([]byte, 32))
	dear := "$argon2id$v=19$m=16,t=2,p=1$c29tZXNhbHQ$" + sum
	lookup := func(string) (string, bool) { return "", false }
	for want, o := range map[string]*Options{
		"m=16,t=2,p=1": {Users: map[string]string{"a": cheap + sum, "b": dear, "c": mustHash(t, "x")}},
		"m=8,t=1,p=1":  {Lookup: lookup, Like: cheap + sum},
		"$2a$04$":      {Lookup: lookup, Like: mustHash(t, "x")},
		"$2a$05$":      {Lookup: lookup, Cost: 5},
	} {
		a, err := newAuth(*o)
		if err != nil || !strings.Contains(string(a.dummy), want) || strings.Contains(string(a.dummy), sum) {
			t.Errorf("%s: %s %v", want, a.dummy, err)
		}
		if err := compare(a.dummy, []byte("x")); err != bcrypt.ErrMismatchedHashAndPassword {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func FuzzParseArgon2id(f *testing.F) {
	f.Add(usual)
	f.Add(cheap)
	f.Add("$argon2id$v=19$m=10,t=1,p=1$00000000000$00000000000000000\r000000")
	f.Fuzz(func(t *testing.T, hash string) {
		if a, err := parseArgon2id(hash); err == nil && (a.String() != hash || a.cost() > maxMemory*maxTime) {
			t.Errorf("%q is %q", hash, a.String())
		}
	})
}
