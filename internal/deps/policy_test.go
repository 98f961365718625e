package deps

// The policy. Each line names a package, what it may import of this module and
// what of other modules; std is always allowed. A package that has no line
// here fails the test.
//
// Packages are named by their folder; "." is the root of the module. A name
// that ends in "/..." stands for the folder and all below it, and "..." alone
// for the whole module. Other modules are named by import path, and what lies
// below it is included.
//
// A package may only list packages of lines above its own, so the table reads
// from the bottom of the house to its roof, and a cycle cannot be written:
//
//	sys < poll < loop < conn < tlsio < bridge < . < cmd
//	buf, timer < loop
//	conn < stream < .
//	http1, http2, wsframe < bridge
//	wsframe < websocket
//
// Nothing needs to exist to be listed.
var policy = []rule{
	// The ground: one duty each, no knowledge of each other.
	{pkg: "direct"},
	{pkg: "internal/buf"},
	{pkg: "internal/timer"},
	// Judges what is quick; it knows neither loops nor messages.
	{pkg: "internal/place"},
	{pkg: "internal/sys", other: "golang.org/x/sys"},

	// The codecs: bytes in, values out. They are handed their buffers.
	{pkg: "internal/http1"},
	{pkg: "internal/http2"},
	{pkg: "internal/wsframe"},

	// Connections on event loops.
	{pkg: "internal/poll", may: "internal/sys"},
	{pkg: "internal/loop", may: "internal/sys internal/poll internal/buf internal/timer"},
	{pkg: "internal/conn", may: "internal/sys internal/poll internal/loop internal/buf internal/timer"},
	{pkg: "internal/tlsio", may: "internal/sys internal/poll internal/loop internal/conn internal/buf internal/timer"},

	// Connections on goroutines, for other listeners and other systems: meets
	// the contract that internal/conn has written down, knows net.Conn and
	// nothing of the loops.
	{pkg: "internal/stream", may: "internal/conn internal/buf internal/sys"},

	// Where codecs and connections meet net/http.
	{pkg: "internal/bridge", may: "direct internal/sys internal/loop internal/conn internal/place internal/buf"},
	{pkg: "internal/bridge/h1", may: "direct internal/http1 internal/sys internal/loop internal/conn internal/place internal/bridge"},
	{pkg: "internal/bridge/h2", may: "direct internal/http2 internal/sys internal/loop internal/conn internal/place internal/buf internal/bridge"},

	// The root wires the parts together.
	{pkg: ".", may: "direct internal/http1 internal/http2 internal/wsframe internal/stream internal/bridge internal/bridge/h1 internal/bridge/h2 " +
		"internal/sys internal/poll internal/loop internal/conn internal/tlsio internal/place internal/buf internal/timer"},

	// These run on a stock net/http server too, so they must not see the
	// engine or the root. What they gain on chert they gain through direct.
	// What static files and middleware share: each knows one part of RFC 9110,
	// or one format, and no handler.
	{pkg: "internal/rfc/field", may: "direct"},
	{pkg: "internal/rfc/percent"},
	{pkg: "internal/rfc/coding", may: "internal/rfc/field", other: "github.com/klauspost/compress github.com/andybalholm/brotli"},
	{pkg: "internal/rfc/cond", may: "direct internal/rfc/field"},
	{pkg: "internal/rfc/ranges"},
	{pkg: "internal/rfc/media"},
	{pkg: "internal/listing", may: "internal/rfc/percent"},
	// How all that refuses requests finds the one hook for that: ratelimit, which
	// knows no middleware, too.
	{pkg: "internal/refusal", may: "direct"},
	{pkg: "router", may: "direct"},
	{pkg: "ratelimit", may: "direct internal/refusal"},
	// What needs another module is a package of its own below middleware, so that
	// only its users get that.
	{pkg: "middleware/internal/wrap", may: "direct"},
	{pkg: "middleware", may: "direct ratelimit internal/rfc/field internal/rfc/coding internal/rfc/cond internal/refusal middleware/internal/wrap"},
	{pkg: "middleware/basicauth", may: "direct internal/refusal middleware/internal/wrap", other: "golang.org/x/crypto/bcrypt"},
	{pkg: "middleware/jwt", may: "direct ratelimit internal/refusal middleware/internal/wrap",
		other: "github.com/golang-jwt/jwt/v5 github.com/MicahParks/jwkset"},
	{pkg: "ratelimit/redisstore", may: "ratelimit", other: "github.com/redis/go-redis/v9 github.com/sony/gobreaker/v2"},
	{pkg: "static", may: "direct internal/sys internal/rfc/field internal/rfc/percent internal/rfc/coding internal/rfc/cond internal/rfc/ranges internal/rfc/media internal/listing",
		other: "github.com/maypok86/otter/v2 github.com/bmatcuk/doublestar/v4 github.com/cespare/xxhash/v2 golang.org/x/sync"},
	{pkg: "websocket", may: "direct internal/wsframe"},

	// Above the root.
	{pkg: "chertest", may: "."},
	{pkg: "suites/internal/onchert", may: ". chertest"},
	{pkg: "suites", may: "suites/internal/onchert"},
	// golang-jwt issues the tokens of the demo.
	{pkg: "cmd/...", may: "...", other: "github.com/spf13/cobra github.com/pelletier/go-toml/v2 github.com/golang-jwt/jwt/v5"},

	// Tests only.
	{pkg: "internal/deps"},
	{pkg: "internal/testing/redistest"},
	{pkg: "internal/testing/race"},
	{pkg: "internal/testing/leak"},
	{pkg: "internal/testing/servertest", may: "internal/testing/leak internal/buf"},
	{pkg: "internal/conn/conntest", may: "internal/conn internal/loop internal/buf internal/sys internal/testing/servertest"},
}

// core is all that the root and whatever it imports may use beside std. A user
// of chert.Server downloads this and no more.
var core = []string{
	"golang.org/x/sys",
}

// confined lists what one folder alone may import, whatever the table says.
var confined = map[string]string{
	"golang.org/x/sys": "internal/sys", // system calls live in one place
}

// The limits of the house; 400 and 60 are the aim. Test files and generated
// files are free.
const (
	maxFileLines = 800
	maxFuncLines = 100
)
