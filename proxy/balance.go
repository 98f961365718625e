package proxy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/chert-http/chert/internal/http1"
)

// Balance is how the server of a request is chosen.
type Balance struct {
	Policy Policy
	// Key is what PolicyHash chooses by.
	Key Key
	// Bound limits the requests in flight of a server to Bound times its share of all; more
	// go to the next server of their key. From more than 1 to 10. 0: 1.5 for keys that a
	// client can choose for one server, such as paths, and none for others; negative: none.
	Bound float64
	// Cookie is the name of PolicySticky's. Default "chert-server".
	Cookie string
}

// Policy is how servers are chosen.
type Policy uint8

const (
	// PolicyLeast takes the better of two random servers, by latency and requests in flight.
	PolicyLeast Policy = iota
	// PolicyRoundRobin takes servers in turn, by weight.
	PolicyRoundRobin
	// PolicyHash takes the same server for the same Key: weighted rendezvous hashing.
	PolicyHash
	// PolicySticky takes the same server for a client, which gets a cookie with a random key.
	PolicySticky

	policies
)

// A Key is a part of a request. The zero Key is ByAddress.
type Key struct {
	by   kind
	name string // of the field, cookie or parameter
}

// kind is a kind of Key.
type kind uint8

const (
	byAddress kind = iota
	byURI
	byPath
	byHeader
	byCookie
	byQuery

	kinds
)

// ByAddress is the client's address, of IPv6 the /64 it is in.
func ByAddress() Key { return Key{} }

// ByURI is the target with its query.
func ByURI() Key { return Key{by: byURI} }

// ByPath is the target without its query.
func ByPath() Key { return Key{by: byPath} }

// ByHeader is the first field of a name, or the host for "Host".
func ByHeader(name string) Key { return Key{byHeader, name} }

// ByCookie is a cookie.
func ByCookie(name string) Key { return Key{byCookie, name} }

// ByQuery is a parameter of the query.
func ByQuery(name string) Key { return Key{byQuery, name} }

// Names of kinds in ParseBalance.
var kindNames = [kinds]string{"client", "uri", "path", "header", "cookie", "query"}

// defaultCookie is the name of PolicySticky's cookie.
const defaultCookie = "chert-server"

// ParseBalance parses "least", "round-robin", "hash client", "hash uri", "hash path",
// "hash header:NAME", "hash cookie:NAME", "hash query:NAME", "sticky" and "sticky COOKIE".
// "" is "least".
func ParseBalance(s string) (Balance, error) {
	words := strings.Fields(s)
	if len(words) == 0 {
		return Balance{}, nil
	}
	b, bad := Balance{}, fmt.Errorf("proxy: ParseBalance: %q is unknown; want least, round-robin, "+
		"hash client|uri|path|header:NAME|cookie:NAME|query:NAME, sticky or sticky COOKIE", s)
	switch words[0] {
	case "least", "round-robin":
		if words[0] == "round-robin" {
			b.Policy = PolicyRoundRobin
		}
		if len(words) != 1 {
			return b, bad
		}
	case "sticky":
		b.Policy = PolicySticky
		if len(words) > 2 {
			return b, bad
		}
		if len(words) == 2 {
			b.Cookie = words[1]
		}
	case "hash":
		b.Policy = PolicyHash
		if len(words) != 2 || !b.Key.parse(words[1]) {
			return b, bad
		}
	default:
		return b, bad
	}
	if err := b.check(); err != nil {
		return b, fmt.Errorf("proxy: ParseBalance: %w", err)
	}
	return b, nil
}

func (k *Key) parse(s string) bool {
	what, name, named := strings.Cut(s, ":")
	for i, n := range kindNames {
		if n == what {
			k.by, k.name = kind(i), name
			return named == (k.by >= byHeader)
		}
	}
	return false
}

func (b *Balance) check() error {
	switch {
	case b.Policy >= policies:
		return errors.New("the policy is unknown")
	case b.Bound > 0 && !(b.Bound > 1 && b.Bound <= 10) || b.Bound != b.Bound:
		return field("Bound", "%v; want 0, a negative number, or more than 1 to 10", b.Bound)
	case b.Cookie != "" && !http1.ValidFieldName(b.Cookie):
		return fmt.Errorf("%q is no name of a cookie", b.Cookie)
	}
	if b.Policy != PolicyHash {
		return nil
	}
	switch k := b.Key; {
	case k.by == byQuery && k.name == "":
		return errors.New("a key by query needs the name of a parameter")
	case (k.by == byHeader || k.by == byCookie) && !http1.ValidFieldName(k.name):
		return fmt.Errorf("%q is no name of a %s", k.name, kindNames[k.by])
	}
	return nil
}

// String returns b as ParseBalance reads it.
func (b Balance) String() string {
	switch b.Policy {
	case PolicyLeast:
		return "least"
	case PolicyRoundRobin:
		return "round-robin"
	case PolicySticky:
		if b.Cookie != "" {
			return "sticky " + b.Cookie
		}
		return "sticky"
	case PolicyHash:
		s := "hash " + kindNames[b.Key.by]
		if b.Key.name != "" {
			s += ":" + b.Key.name
		}
		return s
	}
	return "unknown"
}

// bound returns what internal/balance takes for Bound. Keys that clients choose can be
// ground against one server, and bounded loads are the defence. For a client, or for a
// cookie that this proxy gives out, a move is a lost session.
func (b *Balance) bound() float64 {
	switch {
	case b.Policy != PolicyHash && b.Policy != PolicySticky, b.Bound < 0:
		return 0
	case b.Bound > 0:
		return b.Bound
	case b.Policy == PolicyHash && b.Key.by != byAddress:
		return 1.5
	}
	return 0
}
