package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/admin"
	"github.com/chert-http/chert/cmd/chert/internal/acme"
	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/cmd/chert/internal/vhost"
	"github.com/chert-http/chert/internal/accept"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/successor"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/proxy"
	"github.com/chert-http/chert/ratelimit"
	"github.com/chert-http/chert/static"
)

// server is a running "chert serve". Except for front it belongs to the goroutine that called serve.
type server struct {
	service
	o      *serveOptions
	log    *middleware.LineWriter // to stderr
	files  *logFiles
	errsTo errorOutput
	logger *slog.Logger // to errsTo, as errs
	front  front
	memory *ratelimit.Memory        // of limits, as long as the server runs
	conns  connLimits               // from the start
	times  config.Timeouts          // from the start
	tls    atomic.Pointer[tlsSites] // of the current generation; nil without TLS
	// upgrade is the handler of s.plain.
	upgrade atomic.Pointer[http.Handler]
	proxied atomic.Pointer[proxied] // of the current generation
	tokens  verifiers
	pool    upstreamPool
	forward atomic.Pointer[upstreams] // of the current generation
	adminAt string                    // from the start
	acme    *acme.Manager             // from the first configuration that needs it
	acmeFor acme.Options              // of acme
}

// setup is what a reload replaces.
type setup struct {
	gen     *generation
	what    string // what is served, for messages
	listen  []endpoint
	chosen  bool      // listen is not the default
	format  logFormat // of errors
	logs    *logs
	timeout time.Duration
	admin   string // an address; "" for none
	conns   connLimits
	times   config.Timeouts
	tls     *tlsSites              // nil for plain HTTP
	hosts   *vhost.Table[*tlsSite] // of redirects to TLS; nil for every host
	proxied *proxied
	pages   map[int]*middleware.ErrorPage // of errors, of the whole file
	shown   shown
	forward *upstreams
	cluster config.Cluster
	http3   accept.Packets // nil if no address has it
	early   bool           // it has early data
}

// serve returns nil after a clean stop. Any other result is printed after "chert: ".
func serve(o *serveOptions, stdout, stderr io.Writer) error {
	return asProcess(func() error { return serveSites(o, stdout, stderr) })
}

func serveSites(o *serveOptions, stdout, stderr io.Writer) error {
	if o.quiet {
		stdout = io.Discard
	}
	s := &server{o: o, log: newLog(stderr), memory: ratelimit.NewMemory(nil)}
	s.service = service{stdout: &unwaited{w: stdout}, reload: s.reloadAll,
		errs: slog.NewLogLogger(&s.errsTo, slog.LevelError)}
	s.errsTo.log = s.log
	s.logger = slog.New(&s.errsTo)
	s.tokens.errs, s.pool.errs = s.logger, s.logger
	defer s.pool.close()
	s.files = newLogFiles(s.errs)
	s.errsTo.set(o.log)
	defer within(flushWait, s.errsTo.close)
	defer within(flushWait, s.files.close)

	if err := sys.RaiseFiles(); err != nil {
		s.errs.Printf("the limit of open files stays at %v: %v", sys.Limits(), err)
	}
	// Before anything is opened, so that no signal leaves a socket file.
	stop, hangup, upgrades, release := signals()
	s.upgrades = upgrades
	defer release()
	defer reopens(s.files.reopen)()

	// A reload uses what is at these paths then, also if the current folder has been renamed.
	dir, file := absolute(o.dir), absolute(o.config)
	first, err := s.load()
	o.dir, o.config = dir, file
	if ps, ok := errors.AsType[config.Problems](err); ok && ps.InText() {
		fmt.Fprintln(stderr, ps)
		successor.Current().Fail(ps)
		return fmt.Errorf("%s, so nothing is served", plural(len(ps), "error"))
	}
	if err != nil {
		return err
	}
	s.use(first)
	defer func() {
		s.tls.Load().close()
		if s.acme != nil {
			s.acme.Close()
		}
	}()
	s.conns, s.times = first.conns, first.times
	s.srv = &chert.Server{Handler: &s.front, ErrorLog: s.errs, Upgrader: upgrader,
		Refused: s.front.refused, RefusalPage: s.front.refusalPage,
		MaxConns: s.conns.all, MaxConnsPerAddr: s.conns.perAddr,
		ReadHeaderTimeout: s.times.Head, IdleTimeout: s.times.Idle}
	if first.gen.limits != nil {
		// Requests wait for the store, if not all then those of some sites: on the loop one after the other, in the
		// pool side by side.
		s.srv.Placement = chert.PlacementPooled
	}
	s.srv.ProxyProtocol = func(l net.Listener, peer netip.Addr) bool { return s.proxied.Load().headers(l, peer) }
	s.srv.TLSConfig = &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config,
		error) {
		return s.tls.Load().config(hello)
	}}
	s.plain = s.redirects()
	s.srv.HTTP3 = &s.http3
	if s.bindings, _, err = s.bind(first.listen, first.http3); err != nil {
		return err
	}
	defer func() { s.unbind(s.bindings) }()
	s.turnPackets(s.bindings, first.early)
	s.adminAt = first.admin
	if s.admin, err = startAdmin(first.admin, first.listen, s.srv, o.title(first.what),
		func() []proxy.UpstreamStatus { return s.forward.Load().status() }, nil, s.errs); err != nil {
		return err
	}
	defer s.admin.close()
	if s.control, err = startControl(o.control.text, s.errs); err != nil {
		return err
	}
	defer s.control.close()
	if err := s.manage(first, s.bindings); err != nil {
		return err
	}
	first.proxied.at(s.bindings)
	s.proxied.Store(first.proxied)
	s.admin.show(first.shown, listeners(s.bindings))

	start := time.Now()
	fmt.Fprintln(stdout, startLine(first, listeners(s.bindings))+http3Line(s.bindings)+s.admin.line())
	if warning := s.conns.warning(loop.DefaultConns(), sys.Limits()); warning != "" {
		s.errs.Print(warning)
	}
	if o.open && !successor.Current().Follows() {
		openBrowser(listeners(s.bindings), func(err error) {
			if !o.quiet {
				s.errs.Printf("note: cannot open the browser: %v", err)
			}
		})
	}
	err = s.serveUntil(stop, hangup)
	fmt.Fprint(s.stdout, s.front.tally.summary(time.Since(start), s.front.cache(), refused(s.srv)))
	return err
}

// redirects makes the server of listeners that redirect to TLS.
func (s *server) redirects() *chert.Server {
	plain := s.conns.ofRedirects()
	return &chert.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		(*s.upgrade.Load()).ServeHTTP(w, r)
	}),
		ErrorLog: s.errs, Upgrader: upgrader, Refused: s.front.refused, RefusalPage: s.front.refusalPage,
		MaxConns: plain.all, MaxConnsPerAddr: plain.perAddr,
		ReadHeaderTimeout: s.times.Head, IdleTimeout: s.times.Idle}
}

// load prepares the current configuration of the command line and the file that it names.
func (s *server) load() (*setup, error) {
	o := s.o
	up := &setup{timeout: o.shutdownTimeout, admin: o.admin.text}
	up.listen, up.chosen = o.addresses()
	if o.forward != nil {
		return s.loadForward(up)
	}
	if o.config == "" {
		cfg := o.tls.config()
		cfg.Sites[0].Root, cfg.Sites[0].Options.Dotfiles = o.dir, o.files.dotfiles
		if err := s.secure(up, cfg); err != nil {
			return nil, err
		}
		h, err := o.openFolder(s.logger)
		if err != nil {
			return nil, err
		}
		limits, err := s.limits(cfg)
		if err == nil {
			err = s.openLogs(up, cfg)
		}
		if err != nil {
			limits.close()
			h.Close()
			return nil, err
		}
		up.what = showFolder(o.dir)
		if !cfg.Sites[0].TLS.Auto {
			up.hosts = nil
		}
		return up, s.generate(up, cfg, limits, up.logs.ofFile(withHSTS(h, hstsValue(cfg.Sites[0].TLS))), h)
	}
	cfg, err := config.Load(o.config, configChecks)
	if err != nil {
		return nil, err
	}
	if len(o.listen) == 0 && cfg.Listen != nil {
		var listen endpoints
		for i, one := range cfg.Listen {
			// configChecks has accepted it, but links may have changed since.
			if err := listen.Set(one.Address); err != nil {
				return nil, fmt.Errorf("%s: listen: %q: %w", o.config, one.Address, err)
			}
			e := &listen[i]
			e.plain, e.http1, e.proxies, e.headers = one.Plain, one.HTTP1, one.Proxies, one.Headers
			e.http3, e.protocols = one.HTTP3, one.Protocols
		}
		up.listen, up.chosen = listen, true
	}
	if err := s.secure(up, cfg); err != nil {
		return nil, fmt.Errorf("%s: %w", o.config, err)
	}
	limits, err := s.limits(cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.config, err)
	}
	if err := s.openLogs(up, cfg); err != nil {
		limits.close()
		return nil, err
	}
	all, err := s.build(up, cfg, limits)
	if err != nil {
		limits.close()
		up.logs.close()
		return nil, fmt.Errorf("%s: %w", o.config, err)
	}
	if cfg.Admin != "" && !o.given("admin") {
		up.admin = cfg.Admin
	}
	if cfg.ShutdownTimeout != nil && !o.given("shutdown-timeout") {
		up.timeout = *cfg.ShutdownTimeout
	}
	up.what = showCount(cfg) + " of " + quote(o.config)
	if err := s.generate(up, cfg, limits, all, all.files...); err != nil {
		all.close()
		return nil, fmt.Errorf("%s: %w", o.config, err)
	}
	up.gen.release = all.release
	return up, nil
}

// build makes the sites of cfg, and what they forward to.
func (s *server) build(up *setup, cfg *config.Config, limits limiter) (*sites, error) {
	forward, release, err := s.pool.open(cfg, newProxied(up.listen, s.trusted(cfg)).believed())
	if err != nil {
		return nil, err
	}
	all, err := buildSites(cfg, up.logs, limits, &s.tokens, forward, s.logger, nil)
	if err != nil {
		forward.close()
		return nil, err
	}
	up.forward, all.release = forward, append(all.release, release)
	return all, nil
}

// trusted returns the proxies in front that are trusted on addresses without a list of their own.
func (s *server) trusted(cfg *config.Config) config.Proxies {
	if s.o.given("trusted-proxy") {
		return s.o.proxies.Proxies
	}
	return cfg.Proxies
}

// limits makes the limiter of a configuration, in which the command line overrides the limits of all sites.
func (s *server) limits(cfg *config.Config) (limiter, error) {
	var err error
	if cfg.RateLimit, err = s.o.rates.over(cfg.RateLimit, cfg.HasRates(), s.o.given); err != nil {
		return limiter{}, err
	}
	return openLimiter(cfg.RateLimit, cfg.HasRates(), s.memory, s.logger)
}

// generate makes up's generation of a handler and the middleware that cfg configures. After an error files and
// limits are closed.
func (s *server) generate(up *setup, cfg *config.Config, limits limiter, h http.Handler,
	files ...*static.Handler) error {
	up.times = cfg.Timeouts
	up.proxied = newProxied(up.listen, s.trusted(cfg))
	up.conns = s.o.conns.over(cfg, up.proxied.some())
	if up.tls.guarded() {
		h = guard{up.tls, h}
	}
	var err error
	if rates := cfg.RateLimit.Rates; len(rates) > 0 {
		var limit func(http.Handler) http.Handler
		if limit, err = limits.limit("address", rates); err == nil {
			h = limit(h)
		}
	}
	if err == nil {
		h, err = withErrorPages(h, cfg.Errors)
	}
	if err != nil {
		limits.close()
		for _, f := range files {
			f.Close()
		}
		up.logs.close()
		return err
	}
	if up.tls.guarded() || len(cfg.RateLimit.Rates) > 0 {
		h = up.logs.ofFile(h) // what they refuse has no site
	}
	h = up.logs.around(up.proxied.behind(up.logs.identified(h), up.logs.ids))
	up.gen = newGeneration(h, up.logs.top, files...)
	up.gen.limits, up.gen.logs = limits.closer, up.logs
	up.pages = cfg.Errors
	up.gen.refusal, err = middleware.RefusalPages(&middleware.ErrorPagesOptions{Pages: cfg.Errors})
	if err != nil {
		up.gen.close()
		return err // withErrorPages has made the same
	}
	file := s.o.config
	if file == "" {
		file = s.o.dir
	}
	if file != "" {
		file = showFolder(file)
	}
	up.shown = setupOf(file, up, cfg)
	return nil
}

// use makes up the current setup for requests.
func (s *server) use(up *setup) {
	s.errsTo.set(up.format)
	s.timeout.Store(int64(up.timeout))
	old := s.tls.Swap(up.tls)
	old.close()
	if up.tls != nil {
		up.tls.watch(
			func(what string) { s.logger.Info("loaded " + what + " again, as it has changed") },
			func(text string) { s.logger.Warn(text) },
			func(err error) { s.errs.Printf("%v; the certificate from before stays in use", err) })
	}
	s.front.replace(up.gen)
	for _, text := range moves(s.forward.Swap(up.forward), up.forward) {
		s.logger.Info("reload: " + text)
	}
}

// reread is load of a file that may be another by now. A pipe would be waited for, and with it the signals that stop
// the server.
func (s *server) reread() (*setup, error) {
	if info, err := os.Stat(s.o.config); err == nil && info.Mode().Type() == fs.ModeNamedPipe {
		return nil, fmt.Errorf("%s: a pipe cannot be read again", s.o.config)
	}
	return s.load()
}

// reloadAll replaces the setup by the current file or folder. After an error nothing has changed.
func (s *server) reloadAll() {
	s.files.reopen()
	up, err := s.reread()
	var bindings []*binding
	if err == nil {
		var undo func()
		if bindings, undo, err = s.bind(up.listen, up.http3); err == nil {
			if err = s.manage(up, bindings); err != nil {
				undo()
			}
		}
		if err != nil {
			up.gen.close()
		}
	}
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			s.errs.Print("reload: ", strings.TrimSuffix(line, "\n"))
		}
		s.errs.Print("reload: serving goes on as before")
		s.admin.failed(err)
		return
	}
	up.proxied.at(bindings)
	s.proxied.Store(up.proxied)
	s.use(up)
	if up.conns != s.conns {
		s.errs.Print("reload: how many connections there may be, and of one address, stays as it was at the start; " +
			"restart chert for that")
	}
	if up.times != s.times {
		s.errs.Print("reload: head_timeout and idle_timeout stay as they were at the start; restart chert for that")
	}
	if up.admin != s.adminAt {
		s.errs.Print("reload: the admin address stays as it was at the start; restart chert for that")
	}
	old := s.bindings
	s.bindings = bindings
	s.turnPackets(bindings, up.early)
	up.shown.Reload = &admin.Reload{At: up.shown.Loaded}
	s.admin.show(up.shown, listeners(bindings))
	for _, b := range bindings {
		if !slices.Contains(old, b) {
			s.begin(b)
		}
	}
	// Last, so that some listener is always open.
	s.unbind(slices.DeleteFunc(slices.Clone(old), func(b *binding) bool { return slices.Contains(bindings, b) }))
	fmt.Fprintf(s.stdout, "chert: reloaded; serving %s at %s\n", up.what, showAll(listeners(bindings))+
		http3Line(bindings))
}

// showFolder is the whole path of a folder.
func showFolder(dir string) string { return quote(absolute(dir)) }

// absolute returns the absolute path of a file or folder; "" stays "".
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil && path != "" {
		return abs
	}
	return path
}

// showCount returns a text such as "3 sites" or "3 sites and 1 redirect".
func showCount(cfg *config.Config) string {
	text := plural(len(cfg.Sites), "site")
	if n := len(cfg.Redirects); n > 0 {
		text += " and " + plural(n, "redirect")
	}
	return text
}
