package config

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/middleware/basicauth"
	"github.com/chert-http/chert/middleware/forwardauth"
	"golang.org/x/crypto/bcrypt"
)

// Policy is what a request passes before the action of its site or route, and what is set
// on every response. The zero value is nothing.
type Policy struct {
	Access      *middleware.IPFilterOptions   // nil: every client
	ClientCert  *middleware.ClientCertOptions // nil: none is required here
	Auth        *basicauth.Options            // nil: no authentication
	JWT         *JWT                          // nil: no token
	Forward     *forwardauth.Options          // nil: no other server is asked
	Headers     map[string]string             // by canonical name; "" removes one
	HeaderRules []middleware.HeaderRule       // after Headers
	Errors      map[int]*middleware.ErrorPage // as middleware.ErrorPagesOptions
	Limits      Limits
	Log         *Log // nil: the file's
}

// policy reads the keys that [[site]] and [[site.route]] have in common. Each that t does
// not have is as in base; fields are added to base's.
func (l *loader) policy(t *table, base Policy) Policy {
	p := base
	p.Access = l.access(t, base.Access)
	p.Auth = l.auth(t, base.Auth)
	p.JWT = l.jwt(t, base.JWT)
	p.Forward = l.forwardAuth(t, base.Forward)
	l.oneCredential(t, p)
	p.Limits = l.limits(t, base.Limits)
	l.fields(t, &p)
	outer := l.log
	if base.Log != nil {
		outer = *base.Log
	}
	if own := l.logOf(t, outer); own != nil {
		p.Log = own
	}
	return p
}

// oneCredential checks that requests need not have two things in the field Authorization.
func (l *loader) oneCredential(t *table, p Policy) {
	if p.Auth != nil && p.JWT != nil {
		l.errorf(t.spot.key, "%s has basic_auth and jwt, and a request has one of them; basic_auth = false or "+
			"jwt = false leaves one out", t.name)
	}
}

func (l *loader) access(t *table, base *middleware.IPFilterOptions) *middleware.IPFilterOptions {
	var o middleware.IPFilterOptions
	if base != nil {
		o = *base
	}
	if all, ok := t.list("allow"); ok {
		o.Allow, o.AllowLocal = l.clients("allow", all)
		// An empty allow would admit every client. Against base there is "all".
		if len(all) == 0 && t.m["allow"] != nil {
			l.errorf(t.spot.child("allow").key,
				`allow is empty; "all" stands for every client, and deny = "all" for none`)
		}
	}
	if all, ok := t.list("deny"); ok {
		o.Deny, o.DenyLocal = l.clients("deny", all)
	}
	if len(o.Allow)+len(o.Deny) == 0 && !o.AllowLocal && !o.DenyLocal {
		return nil
	}
	return &o
}

// clients reads addresses, prefixes, "unix" and "all".
func (l *loader) clients(key string, all []item) (prefixes []netip.Prefix, local bool) {
	for _, it := range all {
		switch it.text {
		case "all":
			prefixes = append(prefixes, netip.PrefixFrom(netip.IPv4Unspecified(), 0),
				netip.PrefixFrom(netip.IPv6Unspecified(), 0))
			local = true
		case "unix":
			local = true
		default:
			p, err := parsePrefix(it.text)
			switch {
			case err != nil:
				l.errorf(it.at, `%s: %q: want an address, a prefix such as "10.0.0.0/8", "unix" or "all"`, key, it.text)
			case p.Addr().Is4In6():
				l.errorf(it.at, "%s: %q: write an IPv4 address without the ::ffff: before it", key, it.text)
			default:
				prefixes = append(prefixes, p)
			}
		}
	}
	return prefixes, local
}

// auth reads [site.basic_auth]; false instead of a table is none.
func (l *loader) auth(t *table, base *basicauth.Options) *basicauth.Options {
	if v, ok := t.m["basic_auth"].(bool); ok {
		t.get("basic_auth")
		if v {
			l.errorf(t.spot.child("basic_auth").value, "basic_auth wants a table with users or htpasswd, or false")
		}
		return nil
	}
	a := t.table("basic_auth")
	if a == nil {
		return base
	}
	o := &basicauth.Options{Users: make(map[string]string)}
	if s, at, ok := a.str("realm"); ok {
		o.Realm = s
		if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
			l.errorf(at, "realm wants printable ASCII")
		}
	}
	before := len(l.problems)
	if users := a.table("users"); users != nil {
		for _, name := range slices.Sorted(maps.Keys(users.m)) {
			hash, at, ok := users.str(name)
			if !ok {
				continue
			}
			if err := checkUser(o, name, hash); err != nil {
				l.errorf(at, "users: %v", err)
			}
		}
	}
	if file, at, ok := a.str("htpasswd"); ok {
		l.secret("the file of users", l.path(file), at)
		if err := readUsers(o, l.path(file)); err != nil {
			l.errorf(at, "htpasswd: %v", err)
		}
	}
	a.done()
	if len(o.Users) == 0 && len(l.problems) == before {
		l.errorf(a.spot.key, `%s has no users; want users = { NAME = "HASH" } or htpasswd = "FILE", with hashes of `+
			"chert hash-password", a.name)
	}
	return o
}

// maxCost is the highest cost of a hash: about two seconds for each password that is tried, which
// cannot be cancelled. chert hash-password makes hashes of 10.
const maxCost = 15

// checkUser adds a user.
func checkUser(o *basicauth.Options, name, hash string) error {
	one := &basicauth.Options{Users: map[string]string{name: hash}, CacheSize: -1}
	if _, err := basicauth.New(one); err != nil {
		text := strings.TrimPrefix(err.Error(), "basicauth: Users: ")
		if strings.Contains(text, "could never be sent") || strings.HasPrefix(hash, "$argon2id$") {
			return errors.New(text)
		}
		return fmt.Errorf("the hash of %q is not bcrypt's, nor Argon2id's; chert hash-password and htpasswd -nB make "+
			"one", name)
	}
	if cost, err := bcrypt.Cost([]byte(hash)); err == nil && cost > maxCost {
		return fmt.Errorf("the hash of %q has the cost %d, and each wrong password would take long; want at most %d",
			name, cost, maxCost)
	}
	if _, ok := o.Users[name]; ok {
		return fmt.Errorf("the user %q is there already", name)
	}
	o.Users[name] = hash
	return nil
}

// readUsers adds the users of a file of Apache's htpasswd.
func readUsers(o *basicauth.Options, file string) error {
	data, err := readPart(file)
	if err != nil {
		return fmt.Errorf("%q: %w", file, err)
	}
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, hash, ok := strings.Cut(line, ":")
		if !ok {
			return fmt.Errorf("%q: line %d: want NAME:HASH", file, i+1)
		}
		if err := checkUser(o, name, hash); err != nil {
			return fmt.Errorf("%q: line %d: %w", file, i+1, err)
		}
	}
	return nil
}
