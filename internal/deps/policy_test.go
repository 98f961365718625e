package deps

// The policy. Each line has a package, what it may import of this module and
// what of other modules; std is always allowed. A package without a line fails
// the test.
//
// Packages are named by their folder; "." is the root of the module. A name
// that ends in "/..." stands for the folder and all below it, and "..." alone
// for the whole module. Other modules are named by import path, and what lies
// below it is included.
//
// A package may only list packages of lines above its own, so the table reads
// from the bottom to the top, and a cycle cannot be written. docs/ARCHITECTURE.md
// has the order in a few lines.
var policy = []rule{
	// The ground: packages with one duty each, independent of each other.
	// The exchange and what servers, routers and middleware do with it; direct is what
	// handlers see of it.
	// Views of bytes as strings, and the other way.
	{pkg: "internal/view"},
	{pkg: "direct/wire", may: "internal/view"},
	{pkg: "direct", may: "direct/wire"},
	{pkg: "internal/buf"},
	{pkg: "internal/timer"},
	// The addresses of clients.
	{pkg: "internal/peer"},
	// What a reverse proxy knows of its upstreams, without sockets: why something failed, counts of
	// the last seconds, what may be tried again, the health of servers.
	{pkg: "internal/window"},
	{pkg: "internal/reason"},
	{pkg: "internal/health", may: "internal/reason internal/window"},
	// What connections and protocols have agreed on, on any server.
	{pkg: "internal/link"},
	// What has still to be sent, for carriers of all kinds.
	{pkg: "internal/outbox", may: "internal/buf"},
	// Which server of an upstream gets a request; without sockets and clocks.
	{pkg: "internal/balance", other: "github.com/cespare/xxhash/v2"},
	// Classifies handlers by latency, independent of loops and messages.
	{pkg: "internal/place"},
	// Calls user code, and catches what it throws.
	{pkg: "internal/exec"},
	// Where goroutines let a simulation choose which of them goes on.
	{pkg: "internal/sched"},
	{pkg: "internal/sys", other: "golang.org/x/sys"},
	// The service manager, and the process that takes this one's place.
	{pkg: "internal/systemd", may: "internal/sys"},
	{pkg: "internal/successor", may: "internal/sys internal/systemd"},
	// What a server counts: as its users see it, and where it is counted.
	{pkg: "stats"},
	{pkg: "internal/tally", may: "stats"},

	// The codecs: bytes in, values out. Callers supply the buffers.
	{pkg: "internal/http1"},
	{pkg: "internal/priority"},
	// What HPACK and QPACK have in common.
	{pkg: "internal/pack"},
	{pkg: "internal/http2", may: "internal/pack internal/priority"},
	{pkg: "internal/http3", may: "internal/pack internal/priority"},
	// What a gateway makes of a parsed head before it sends it on.
	{pkg: "internal/wsframe"},
	{pkg: "internal/proxyproto"},
	// Only for users of packages websocket and eventstream, since it needs another module.
	{pkg: "internal/wsdeflate", other: "github.com/klauspost/compress"},
	// How WebSockets and event streams take connections over from either server.
	{pkg: "internal/takeover", may: "internal/link internal/outbox"},

	// Connections on event loops.
	{pkg: "internal/poll", may: "internal/sys"},
	// A kernel in memory, for tests of the whole server in test/sim.
	{pkg: "internal/sim", may: "internal/sys internal/poll internal/sched"},
	{pkg: "internal/loop", may: "internal/sys internal/poll internal/buf internal/timer internal/tally internal/sched"},
	{pkg: "internal/conn", may: "internal/link internal/sys internal/poll internal/loop internal/exec internal/buf internal/outbox internal/timer internal/peer internal/tally stats"},
	{pkg: "internal/tlsio", may: "internal/sys internal/poll internal/loop internal/conn internal/peer internal/exec internal/buf internal/timer internal/tally stats internal/sched"},

	// Connections that belong to user code, and wait without a goroutine.
	{pkg: "internal/park", may: "internal/sys"},
	// For programs: what internal/park does for sockets, for types of connections.
	{pkg: "park", may: "internal/exec internal/park internal/tlsio"},

	// Connections on goroutines, for other listeners and other systems:
	// implement the contract of internal/conn on a net.Conn, without loops.
	{pkg: "internal/stream", may: "internal/conn internal/peer internal/exec internal/buf internal/outbox internal/sched internal/sys internal/tally stats"},

	// Where codecs and connections meet net/http.
	{pkg: "internal/bridge", may: "internal/link direct direct/wire internal/sys internal/loop internal/conn internal/peer internal/exec internal/place internal/buf internal/takeover internal/tally stats internal/view internal/sched"},
	{pkg: "internal/retry", may: "internal/reason internal/window"},
	{pkg: "internal/forward", may: "internal/http1"},
	{pkg: "internal/origin", may: "internal/sys internal/http1 internal/reason internal/retry"},
	{pkg: "internal/outbound", may: "direct internal/sys internal/poll internal/buf internal/loop internal/conn internal/http1 internal/forward internal/reason internal/retry internal/origin internal/tlsio"},
	{pkg: "internal/bridge/h1", may: "direct direct/wire internal/http1 internal/sys internal/loop internal/conn internal/peer internal/exec internal/place internal/bridge internal/tally internal/timer stats internal/view internal/buf internal/forward internal/reason internal/outbound"},
	{pkg: "internal/bridge/section", may: "direct direct/wire internal/http1 internal/pack internal/bridge internal/tally internal/view"},
	{pkg: "internal/bridge/h2", may: "direct direct/wire internal/http2 internal/pack internal/priority internal/bridge/section internal/sys internal/timer internal/loop internal/conn internal/exec internal/place internal/buf internal/outbox internal/bridge internal/takeover internal/tally stats internal/view internal/sched internal/http1 internal/forward internal/reason internal/outbound"},
	// What QUIC carries, by an interface: package http3 has the transport.
	{pkg: "internal/bridge/h3", may: "direct direct/wire internal/view internal/place internal/http3 internal/pack internal/priority internal/bridge/section internal/sys internal/loop internal/conn internal/exec internal/peer internal/stream internal/buf internal/outbox internal/bridge internal/takeover internal/tally stats"},

	// What a server knows of itself.
	{pkg: "internal/observe", may: "direct/wire internal/sys internal/poll internal/exec internal/loop internal/conn internal/tlsio internal/stream " +
		"internal/place internal/buf internal/tally stats"},

	// Accepts connections, and gives them to loops and goroutines.
	{pkg: "internal/accept", may: "internal/sys internal/poll internal/exec internal/loop internal/conn internal/tlsio internal/stream internal/bridge " +
		"internal/bridge/h1 internal/observe internal/tally internal/sched internal/proxyproto stats"},

	// What tests in other packages see of a Server; the root registers itself.
	{pkg: "internal/testhook", may: "internal/sched internal/conn internal/poll"},

	// The root wires the parts together.
	{pkg: ".", may: "direct direct/wire internal/http1 internal/http2 internal/pack internal/wsframe internal/stream internal/bridge internal/bridge/h1 internal/bridge/h2 " +
		"internal/sys internal/poll internal/exec internal/loop internal/conn internal/tlsio internal/park internal/place internal/buf internal/observe internal/accept internal/successor internal/systemd internal/timer internal/testhook internal/tally stats internal/sched"},

	// HTTP/3, for servers of programs that import it.
	{pkg: "http3", may: "internal/sys internal/exec internal/successor internal/accept internal/observe internal/bridge/h3 internal/http3 internal/pack internal/tally", other: "github.com/quic-go/quic-go golang.org/x/net/ipv4"},

	// These run on a stock net/http server too, so they must not depend on the
	// engine or the root. They use the fast path of chert through direct.
	// First, what static files and middleware share: each implements one part
	// of RFC 9110, or one format, without handlers.
	{pkg: "internal/rfc/field", may: "direct/wire"},
	{pkg: "internal/rfc/percent"},
	{pkg: "internal/rfc/coding", may: "internal/rfc/field"},
	{pkg: "internal/rfc/encode", may: "internal/rfc/coding", other: "github.com/klauspost/compress github.com/andybalholm/brotli"},
	{pkg: "internal/rfc/cond", may: "direct/wire internal/rfc/field internal/view"},
	{pkg: "internal/rfc/ranges"},
	{pkg: "internal/rfc/media"},
	{pkg: "internal/listing", may: "internal/rfc/percent"},
	// How everything that refuses requests finds the hook for refusals,
	// including ratelimit, which does not depend on middleware.
	{pkg: "internal/refusal", may: "direct direct/wire"},
	// The address of a proxy in front, which middleware replaces and proxy needs.
	{pkg: "internal/lastproxy"},
	// The name of the authenticated client: filter sets it, the rest of middleware
	// and its users read it.
	{pkg: "internal/user"},
	// Patterns of routes, which the command checks before it registers them.
	{pkg: "internal/pattern"},
	{pkg: "router", may: "direct direct/wire internal/refusal internal/view internal/pattern"},
	// How ratelimit, middleware and users write a rule once for both paths. Below
	// ratelimit, which knows no middleware.
	{pkg: "filter", may: "direct direct/wire internal/refusal internal/user"},
	{pkg: "ratelimit", may: "direct direct/wire filter internal/refusal internal/rfc/field internal/view"},
	// Packages that need another module are below middleware, so that only
	// their users get that module.
	{pkg: "middleware/internal/wrap", may: "direct direct/wire filter"},
	{pkg: "middleware", may: "internal/lastproxy direct direct/wire filter internal/rfc/percent internal/rfc/field internal/rfc/coding internal/rfc/encode internal/rfc/cond internal/refusal internal/user internal/listing middleware/internal/wrap internal/view"},
	{pkg: "middleware/basicauth", may: "direct direct/wire filter internal/refusal middleware/internal/wrap internal/view", other: "golang.org/x/crypto/bcrypt golang.org/x/crypto/argon2"},
	{pkg: "middleware/forwardauth", may: "direct direct/wire filter internal/rfc/field middleware/internal/wrap"},
	{pkg: "middleware/jwt", may: "direct direct/wire filter ratelimit internal/refusal middleware/internal/wrap",
		other: "github.com/golang-jwt/jwt/v5 github.com/MicahParks/jwkset"},
	// Redis by its URL, and its streams, for packages that keep something there.
	{pkg: "internal/redisconn", other: "github.com/redis/go-redis/v9"},
	{pkg: "internal/backlog"},
	{pkg: "internal/redisstream", may: "internal/redisconn internal/backlog stats", other: "github.com/redis/go-redis/v9"},
	{pkg: "ratelimit/redisstore", may: "ratelimit internal/redisconn", other: "github.com/redis/go-redis/v9 github.com/sony/gobreaker/v2"},
	// The syntax of names in static's options, which the command checks one at a time.
	{pkg: "internal/filename", may: "direct/wire internal/rfc/coding", other: "github.com/bmatcuk/doublestar/v4"},
	{pkg: "static", may: "direct direct/wire internal/filename internal/sys internal/rfc/field internal/rfc/percent internal/rfc/coding internal/rfc/encode internal/rfc/cond internal/rfc/ranges internal/rfc/media internal/listing internal/view",
		other: "github.com/maypok86/otter/v2 github.com/cespare/xxhash/v2 golang.org/x/sync"},
	// How requests are forwarded to upstream servers: the client's side of HTTP/1, and the handler.
	{pkg: "proxy", may: "direct direct/wire filter internal/refusal internal/http1 internal/forward internal/reason internal/retry internal/health internal/balance internal/origin internal/outbound internal/lastproxy internal/peer internal/sys internal/view"},
	{pkg: "internal/roster"},
	{pkg: "eventstream", may: "internal/roster internal/wsdeflate internal/rfc/field internal/rfc/coding internal/takeover internal/exec internal/buf internal/outbox internal/sched"},
	// Topics and rooms that processes share, for programs that import these packages.
	{pkg: "eventstream/redistopic", may: "eventstream internal/redisstream internal/backlog stats"},
	// How what a server has counted is shown. The listener of admin may be that of any
	// server. Of proxy it knows the status, which is a value.
	{pkg: "internal/interval", may: "stats"},
	{pkg: "admin", may: "stats internal/interval proxy"},
	// timer for how waits are spread; conn and stream for connections of other servers.
	{pkg: "websocket", may: "internal/link internal/conn internal/stream internal/roster internal/rfc/field internal/wsframe internal/wsdeflate internal/takeover internal/exec internal/buf internal/outbox internal/timer internal/sched"},

	{pkg: "websocket/redisroom", may: "websocket internal/redisstream internal/backlog internal/exec stats", other: "github.com/redis/go-redis/v9"},

	// Of the server it knows what it has counted, and no more; of a proxy too.
	{pkg: "metrics", may: "stats proxy", other: "github.com/prometheus/client_golang github.com/prometheus/client_model"},

	// Above the root.
	{pkg: "internal/sim/mutants"},
	{pkg: "chertest", may: "."},
	{pkg: "suites/internal/onchert", may: ". chertest proxy"},
	{pkg: "suites", may: ". proxy suites/internal/onchert"},
	// golang-jwt issues the tokens of the demo. certmagic, with its log, is for
	// internal/acme alone; see confined.
	{pkg: "cmd/...", may: "...", other: "github.com/spf13/cobra github.com/spf13/pflag github.com/pelletier/go-toml/v2 github.com/golang-jwt/jwt/v5 golang.org/x/term golang.org/x/crypto/bcrypt " +
		"github.com/caddyserver/certmagic go.uber.org/zap github.com/redis/go-redis/v9"},

	// Tests only.
	{pkg: "internal/deps"},
	{pkg: "internal/testing/gorillatest", other: "github.com/gorilla/websocket"},
	{pkg: "internal/testing/race"},
	{pkg: "internal/testing/leak"},
	{pkg: "internal/testing/freeport"},
	{pkg: "internal/testing/http3client", other: "github.com/quic-go/quic-go"},
	{pkg: "internal/testing/servertest", may: "internal/testing/leak internal/buf"},
	{pkg: "internal/testing/redistest", may: "internal/testing/servertest internal/testing/freeport"},
	{pkg: "internal/testing/door"},
	{pkg: "internal/outbox/outboxtest", may: "internal/outbox"},
	{pkg: "internal/conn/conntest", may: "internal/conn internal/stream internal/exec internal/loop internal/sys internal/tally internal/outbox internal/outbox/outboxtest internal/testing/servertest"},
	// Starts servers, so it is above the root; the packages below the root are
	// tested with servertest.
	{pkg: "internal/testing/engines", may: ". stats internal/testhook internal/sys internal/conn internal/conn/conntest internal/testing/servertest"},
	// What topics of all stores have in common.
	{pkg: "internal/testing/topictest", may: ". eventstream internal/testing/engines internal/testing/servertest"},
	{pkg: "internal/testing/autobahn", may: "websocket"},
	// Suites of the whole server, and the table of differences that two of them share.
	{pkg: "test/..."},
}

// core are the modules that the root and its imports may use beside std. A user
// of chert.Server downloads these and no more.
var core = []string{
	"golang.org/x/sys",
}

// confined are imports that only one folder and helpers of tests may have, whatever the
// table permits.
var confined = map[string]string{
	"golang.org/x/sys": "internal/sys", // system calls live in one place
	// ACME is the command's: a program that imports chert does not get it.
	"github.com/caddyserver/certmagic": "cmd/chert/internal/acme",
	"go.uber.org/zap":                  "cmd/chert/internal/acme",
	// All other packages have QUIC by an interface.
	"github.com/quic-go/quic-go": "http3",
}

// The limits on lengths; 400 and 60 are the aim. Test files and generated files
// have none.
const (
	maxFileLines = 800
	maxFuncLines = 100
	maxColumns   = 120 // with tabs of tabColumns
	tabColumns   = 4
)

// notWrapped are packages with lines of more columns.
var notWrapped = []string{
	"suites", // tables with a line for each test or patch
}
