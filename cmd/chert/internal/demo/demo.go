package demo

import (
	"embed"
	"io/fs"
	"log/slog"
	"net/http"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/ratelimit"
	"github.com/chert-http/chert/router"
	"github.com/chert-http/chert/static"
	"github.com/chert-http/chert/websocket"
)

// Options are set by the command.
type Options struct {
	// Log is the outermost middleware, nil for none.
	Log func(http.Handler) http.Handler
	// Logger gets what goes wrong inside.
	Logger *slog.Logger
	// At is where the server is, for clients that have not said what they call it.
	At At
	// Feed and Chat are shared with other instances, whose addresses are Instances, this one
	// among them: "http://localhost:8080". Nil for a demo that is alone.
	Feed      *eventstream.Topic
	Chat      Room
	Instances []string
}

// Room is the room of the chat.
type Room interface {
	Join(c *websocket.Conn)
	Broadcast(t websocket.Type, p []byte)
}

// Demo is the service. It is safe for concurrent use.
type Demo struct {
	Handler http.Handler
	Files   *static.Handler // of /files/; Close closes it

	options Options
	keys    *keys
	clocks  clocks
	chat    chat
	feed    feed
	page    page
}

// Limits of the service.
const (
	uploadLimit = 10 << 20        // bytes; 413 beyond that
	maxClocks   = 1024            // at the same time
	feedRetry   = time.Second     // until a client connects again; up to twice that
	maxQueries  = 1024            // at the same time
	queryLimit  = 2 * time.Second // until /db responds with 504
	queryTime   = 50 * time.Millisecond
)

//go:embed files
var embedded embed.FS

// New makes a service with new tokens.
func New(o Options) (*Demo, error) {
	d := &Demo{options: o}
	var err error
	if d.keys, err = newKeys(); err != nil {
		return nil, err
	}
	files, err := fs.Sub(embedded, "files")
	if err != nil {
		return nil, err
	}
	if d.Files, err = static.NewFS(files, &static.Options{Listing: true, Logger: o.Logger}); err != nil {
		return nil, err
	}
	if err := d.page.init(); err != nil {
		return nil, err
	}
	if err := d.chat.init(o.Chat); err != nil {
		return nil, err
	}
	if err := d.feed.init(o.Feed); err != nil {
		return nil, err
	}
	if d.Handler, err = d.routes(); err != nil {
		return nil, err
	}
	return d, nil
}

// Close releases the service's resources, once its server has stopped.
func (d *Demo) Close() error {
	d.keys.close()
	return d.Files.Close()
}

// Bearer returns the token that is valid as long as the service runs.
func (d *Demo) Bearer() string { return d.keys.bearer }

// JWT issues a token that is valid for a day.
func (d *Demo) JWT() (string, error) { return d.keys.issue(time.Now()) }

func (d *Demo) routes() (http.Handler, error) {
	r := router.New()
	// Outermost first, see package middleware.
	if d.options.Log != nil {
		r.Use(d.options.Log)
	}
	r.Use(
		middleware.Recover(&middleware.RecoverOptions{Handle: d.panicked}),
		middleware.RequestID(nil),
		middleware.SecurityHeaders(nil),
	)
	// Files have compressed forms of their own, with strong entity tags.
	r.Mount("/files", d.Files)
	r.Handle("GET /chat", d.chat.open)
	feed, publish := http.Handler(d.feed.open), http.Handler(http.HandlerFunc(d.feed.publish))
	if d.options.Instances != nil {
		page, err := serveCluster(d.options.Instances)
		if err != nil {
			return nil, err
		}
		r.HandleFunc("GET /cluster", page)
		feed, publish = shared(feed), shared(publish)
	}
	r.Handle("GET /feed", feed)
	r.Handle("POST /feed", publish)

	g := r.With(middleware.Must(middleware.Compress(nil)))
	g.HandleFunc("GET /{$}", d.start)
	g.Handle("GET /ping", ping)
	g.HandleDirect("POST /echo", echo)
	g.HandleFunc("POST /token", d.token)
	g.With(d.keys.require).HandleDirect("GET /users/{id}", user)
	g.With(middleware.InFlight(&middleware.InFlightOptions{Max: maxClocks})).HandleFunc("GET /clock", d.clocks.serve)
	upload := g.With(middleware.BodyLimit(&middleware.BodyLimitOptions{MaxSize: uploadLimit}))
	upload.HandleFunc("POST /upload", receive)
	upload.HandleFunc("PUT /upload", receive)
	g.With(middleware.InFlight(&middleware.InFlightOptions{Max: maxQueries}),
		middleware.Timeout(&middleware.TimeoutOptions{Limit: queryLimit})).HandleFunc("GET /db", query)
	g.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { panic("the demo's own") })

	limit, err := ratelimit.New(&ratelimit.Options{
		Rules: []ratelimit.Rule{{Name: "demo", Rate: ratelimit.Rate{Count: limitedRate, Per: time.Minute}}},
	})
	if err != nil {
		return nil, err
	}
	g.With(limit).Handle("GET /limited", unhurried)
	return r, nil
}

// limitedRate is how many requests for /limited an address may send in a
// minute.
const limitedRate = 5

func (d *Demo) panicked(v any, _ []byte) { d.options.Logger.Error("a handler panicked", "panic", v) }

var plainText = http.Header{"Content-Type": {"text/plain; charset=utf-8"}}

var (
	ping      = direct.NewResponse(http.StatusOK, plainText, []byte("pong\n"))
	unhurried = direct.NewResponse(http.StatusOK, plainText, []byte("not too often\n"))
)
