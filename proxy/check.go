package proxy

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"time"

	"github.com/chert-http/chert/internal/health"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/origin"
	"github.com/chert-http/chert/internal/reason"
)

// valid reports whether the check can be sent.
func (c *Check) valid() bool {
	return c.Path != "" && c.Path[0] == '/' && plain(c.Path) && http1.ValidHost([]byte(c.Host))
}

// negative reports whether there is a value that no check can have.
func (c *Check) negative() bool { return c.Interval < 0 || c.Timeout < 0 || c.Fall < 0 || c.Rise < 0 }

// key returns what the check asks and expects, for health.Key: two that differ in it are
// not the same check.
func (c *Check) key(p Protocol) string {
	if c == nil {
		return ""
	}
	return strconv.Itoa(int(p)) + " " + strconv.Itoa(c.Status) + " " + c.Host + " " + c.Path
}

// check starts the active checks of e. Under Pool.mu.
func (e *entry) check(c *Check, p Protocol, config *tls.Config) {
	ctx, cancel := context.WithCancel(e.pool.ctx)
	e.checks = cancel
	k := checker{entry: e, check: *c, h2: p == ProtocolHTTP2, dialer: origin.Dialer{Addr: e.key.Addr, TLS: config}}
	e.pool.running.Go(func() { k.run(ctx) })
}

type checker struct {
	entry  *entry
	check  Check
	h2     bool
	dialer origin.Dialer
}

func (k *checker) run(ctx context.Context) {
	server := k.entry.ref.Server
	for {
		due, ok := server.NextCheck()
		if !ok {
			return
		}
		timer := time.NewTimer(time.Duration(due-now()) + time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if t, deadline, ok := server.BeginCheck(now()); ok {
			limited, cancel := context.WithTimeout(ctx, time.Duration(deadline-now()))
			code := k.once(limited)
			cancel()
			server.EndCheck(now(), t, code)
		}
	}
}

// once makes one check, on a connection of its own. http.Transport would do, but not with
// what the proxy requires of a response.
func (k *checker) once(ctx context.Context) reason.Code {
	if k.h2 {
		return k.http2(ctx)
	}
	c, f := k.dialer.Dial(ctx)
	if f != nil {
		return timed(ctx, f.Reason)
	}
	host := k.check.Host
	if host == "" {
		host = hostOf(k.entry.key.Addr)
	}
	head := "GET " + k.check.Path + " HTTP/1.1\r\nHost: " + host +
		"\r\nUser-Agent: chert-check\r\nConnection: close\r\n\r\n"
	x, f := c.Do(ctx, &origin.Request{Head: []byte(head), Limits: http1.DefaultLimits}, (*origin.Conn).Close)
	if f != nil {
		return timed(ctx, f.Reason)
	}
	defer x.Close()
	return k.judge(x.Response.Status)
}

// http2 is once for servers of HTTP/2.
func (k *checker) http2(ctx context.Context) reason.Code {
	l := &link{entry: k.entry, dialer: k.dialer}
	client := newH2(l, &UpstreamOptions{TLS: k.dialer.TLS, IdleTimeout: time.Second})
	defer client.close()
	host := k.check.Host
	if host == "" {
		host = hostOf(k.entry.key.Addr)
	}
	scheme := "http"
	if k.dialer.TLS != nil {
		scheme = "https"
	}
	one, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := &h2try{ctx: one, cancel: cancel, again: true}
	traced := httptrace.WithClientTrace(one, t.trace())
	r, err := http.NewRequestWithContext(traced, http.MethodGet, scheme+"://"+host+k.check.Path, nil)
	if err != nil {
		return reason.Internal
	}
	res, err := client.transport.RoundTrip(r)
	if err != nil {
		code := h2Failure(one, err, false, false).Reason
		if code == reason.Unclear || code == reason.Unserved { // no client's bytes are why
			code = reason.Reset
		}
		return timed(ctx, code)
	}
	res.Body.Close()
	return k.judge(res.StatusCode)
}

func (k *checker) judge(status int) reason.Code {
	if k.check.Status == status || k.check.Status == 0 && status/100 == 2 {
		return reason.None
	}
	return reason.CheckStatus
}

// timed returns code, or CheckTimeout if the time is over. A check whose Pool closes says
// nothing.
func timed(ctx context.Context, code reason.Code) reason.Code {
	switch ctx.Err() {
	case context.DeadlineExceeded:
		return reason.CheckTimeout
	case context.Canceled:
		return reason.ClientGone
	}
	if code == reason.ClientGone {
		return reason.CheckTimeout
	}
	return code
}

// hostOf returns what a Host field has for the address of a server.
func hostOf(addr string) string {
	if network, _ := origin.Address(addr); network == "unix" {
		return "localhost"
	}
	return addr
}

// healthOptions returns the options for package health.
func (u *Upstream) healthOptions() *health.Options {
	h := u.o.Health
	o := &health.Options{Consecutive: h.Consecutive, Within: h.Within, Percent: h.Percent, Least: h.Least,
		Ejection: h.Ejection, MaxEjection: h.MaxEjection}
	if h.Off {
		o.Consecutive, o.Percent = -1, -1
	}
	if c := u.o.Check; c != nil {
		o.Interval, o.Timeout, o.Fall, o.Rise = c.Interval, c.Timeout, c.Fall, c.Rise
	}
	if d := u.o.ConnectTimeout + u.o.ResponseTimeout; d > time.Minute {
		o.ProbeTimeout = 2 * d
	}
	return o
}
