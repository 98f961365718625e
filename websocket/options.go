package websocket

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/internal/rfc/field"
	"github.com/chert-http/chert/internal/takeover"
	"github.com/chert-http/chert/internal/wsdeflate"
	"github.com/chert-http/chert/internal/wsframe"
)

// Options configure a [Handler].
type Options struct {
	// OnOpen is called when a connection has been opened, before any other function. r
	// is the request that opened it and is valid only during the call.
	OnOpen func(c *Conn, r *http.Request)
	// OnMessage is called for each message, one at a time and in order for one
	// connection, concurrently for different ones. p is valid only during the call.
	// Nothing is read from the connection meanwhile, nor while more than half of
	// MaxUnsent waits that was sent during such a call: a client that does not read
	// the answers to its messages is slowed down. On event loops the function
	// runs like a handler: on the loop if it is known to be quick, on a pooled
	// goroutine otherwise. Nil ignores messages.
	OnMessage func(c *Conn, t Type, p []byte)
	// Serve, if not nil, is called instead of OnOpen and OnMessage, on the handler's
	// goroutine, for code that prefers Conn.Read. When it returns, the connection is
	// closed with CodeNormal unless it was closed before. r is valid as in any
	// handler. Such a connection costs a goroutine, as one that was hijacked does.
	Serve func(c *Conn, r *http.Request)
	// OnClose is called once, on a goroutine of its own, after the connection has
	// ended and all other functions have returned. code and reason are those of the
	// client's Close frame or of the error that ended the connection;
	// CodeAbnormal if there was neither. The server's Shutdown does not wait for it: a
	// program that must calls Done of a sync.WaitGroup here, and Add in OnOpen.
	OnClose func(c *Conn, code Code, reason string)

	// Subprotocols are those that the server speaks, in the order of its
	// preference. The first one that the client offers too is chosen; without one
	// the connection has none.
	Subprotocols []string
	// Origins are the origins from which browsers may connect besides the server's
	// own: "https://example.com", "https://*.example.com" for all subdomains, or "*"
	// for all, which lets any page use the cookies of its visitors. Requests
	// without an Origin do not come from a browser's page and are accepted.
	Origins []string

	// MaxMessage is the largest message that is accepted, in bytes, after it has been
	// inflated. A larger one ends the connection with code 1009. Default 1 MiB;
	// negative: no limit.
	MaxMessage int64
	// MaxFragments is how many frames a message may have, empty ones included.
	// Code 1008. Default 4096, and one more for each 64 bytes of the message: frames
	// cost time and no memory, and that many cost about as much as their bytes.
	// Negative: no limit.
	MaxFragments int
	// MaxUnsent bounds, in bytes, what waits for a client that reads too slowly. A
	// message of any size is accepted while less than half of that waits. Default
	// 256 KiB, at least 64 KiB; negative: no limit.
	MaxUnsent int
	// Slow is what happens to clients that read too slowly.
	Slow Slow
	// PingInterval is after how long without anything from the client a Ping is
	// sent, up to a tenth and at most 4 s earlier so that those to many clients are
	// spread. Default 50 s, below the usual minute of proxies, but at most half of
	// IdleTimeout; negative: none.
	PingInterval time.Duration
	// IdleTimeout is after how long without anything from the client, not even the
	// answer to a Ping, the connection is closed. Both times begin anew when OnMessage
	// returns, and when Conn.Read is called after a message. Default 2 min; negative: never.
	IdleTimeout time.Duration
	// Compression enables the extension permessage-deflate (RFC 7692). Default none.
	Compression *Compression
	// Logger receives panics of the functions above where the server does not log
	// them, and of Room.OnLeave. Default slog.Default.
	Logger *slog.Logger
}

// Slow is what happens when a client reads more slowly than messages are sent to it.
type Slow uint8

const (
	// SlowClose ends the connection. The client can connect again and get the present
	// state.
	SlowClose Slow = iota
	// SlowDrop drops the messages that there is no room for.
	SlowDrop
)

// Compression is how messages are compressed. The zero value compresses messages of
// 512 bytes or more, with windows of 4 KiB in both directions that last from one
// message to the next.
//
// A window that lasts ("context takeover") makes similar messages much smaller and
// costs up to its size in memory for each direction of a connection that uses it.
// Nothing else of the compression is kept while a connection is idle. Do not
// compress secrets together with data that an attacker chooses (CRIME).
type Compression struct {
	// Threshold is the smallest message that is compressed, in bytes. Default 512;
	// negative: all but empty ones.
	Threshold int
	// Window and ClientWindow are the sizes of the server's and the client's window
	// as powers of two, from 8 to 15 (256 bytes to 32 KiB). Default 12. A client
	// that cannot limit its window is asked to keep none.
	Window, ClientWindow int
	// NoTakeover and ClientNoTakeover make the windows last for one message only.
	NoTakeover, ClientNoTakeover bool
}

// Defaults of Options and Compression.
const (
	defaultMaxMessage   = 1 << 20
	defaultMaxFragments = 4096
	defaultEarns        = 64
	defaultMaxUnsent    = 256 << 10
	defaultPingInterval = 50 * time.Second
	defaultIdleTimeout  = 2 * time.Minute
	defaultThreshold    = 512
	defaultWindow       = 12
)

// closeTimeout is how long the client has to answer a Close frame.
const closeTimeout = 5 * time.Second

// maxSurplus is how much a client may send after the server's Close frame, in bytes: what was
// on its way. One that sends more does not mean to answer.
const maxSurplus = 1 << 20

// mostMessage is as good as no limit, and what is computed with it does not overflow.
const mostMessage = math.MaxInt64 / 8

// or returns v, or def for 0; a negative v is none.
func or[T int | int64 | time.Duration](v, def, none T) T {
	if v < 0 {
		return none
	}
	return cmp.Or(v, def)
}

// New makes a [Handler]. o may be nil; then messages are ignored.
func New(o *Options) (*Handler, error) {
	if o == nil {
		o = new(Options)
	}
	h := &Handler{
		o:         *o,
		maxUnsent: or(o.MaxUnsent, defaultMaxUnsent, -1),
		ping:      int64(or(o.PingInterval, defaultPingInterval, 0)),
		idle:      int64(or(o.IdleTimeout, defaultIdleTimeout, 0)),
		kind:      "websocket " + strconv.FormatUint(kinds.Add(1), 10),
	}
	h.o.Subprotocols = slices.Clone(o.Subprotocols)
	if o.PingInterval == 0 && h.idle > 0 {
		h.ping = min(h.ping, h.idle/2) // or a client that is quiet is closed before it is asked
	}
	if h.maxUnsent > 0 {
		h.maxUnsent = max(h.maxUnsent, takeover.MinLimit)
	}
	limit := min(or(o.MaxMessage, defaultMaxMessage, 0), mostMessage)
	h.limits = wsframe.Limits{Message: limit, Deflated: limit, Fragments: or(o.MaxFragments, defaultMaxFragments, 0)}
	if o.MaxFragments == 0 {
		h.limits.Earns = defaultEarns
	}
	if limit > 0 {
		// Data that cannot be compressed grows, by up to an eighth where zlib has
		// little memory (deflateBound).
		h.limits.Deflated += limit>>3 + limit>>7 + 64
	}
	if len(o.Subprotocols) > math.MaxUint8 {
		return nil, errors.New("websocket: Subprotocols: there are more than 255")
	}
	for _, p := range o.Subprotocols {
		if !field.IsToken(p) {
			return nil, fmt.Errorf("websocket: Subprotocols: %q is not a token", p)
		}
	}
	for _, v := range o.Origins {
		g, err := parseOrigin(v)
		if err != nil {
			return nil, err
		}
		h.origins = append(h.origins, g)
	}
	if o.Slow > SlowDrop {
		return nil, fmt.Errorf("websocket: Slow: unknown value %d", o.Slow)
	}
	if c := o.Compression; c != nil {
		h.threshold = or(c.Threshold, defaultThreshold, 1) // an empty message is never compressed
		window, client := or(c.Window, defaultWindow, -1), or(c.ClientWindow, defaultWindow, -1)
		for _, w := range []int{window, client} {
			if w < wsdeflate.MinBits || w > wsdeflate.MaxBits {
				return nil, errors.New("websocket: Compression: windows are from 8 to 15")
			}
		}
		h.params = wsdeflate.Params{Bits: uint8(window), ClientBits: uint8(client), NoTakeover: c.NoTakeover,
			ClientNoTakeover: c.ClientNoTakeover}
	}
	return h, nil
}

// origin is an element of Options.Origins.
type origin struct {
	any    bool
	scheme string
	host   string
	below  bool // subdomains of host
}

func parseOrigin(s string) (g origin, err error) {
	if s == "*" {
		return origin{any: true}, nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" ||
		u.User != nil {
		return g, fmt.Errorf("websocket: Origins: %q is no origin", s)
	}
	g.scheme, g.host = u.Scheme, strings.ToLower(u.Host)
	g.host, g.below = strings.CutPrefix(g.host, "*.")
	if strings.Contains(g.host, "*") {
		return g, fmt.Errorf("websocket: Origins: %q: * may only stand for all subdomains", s)
	}
	return g, nil
}

// allows reports whether the origin of a request, with a host in lower case, is g.
func (g *origin) allows(u *url.URL, host string) bool {
	switch {
	case g.any:
		return true
	case g.scheme != u.Scheme:
		return false
	case g.below:
		return strings.HasSuffix(host, "."+g.host)
	}
	return host == g.host
}
