package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"runtime"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const urlForm = `want redis://[USER:PASSWORD@]HOST:PORT[/DB], rediss:// for TLS, unix:///PATH, redis+cluster:// or ` +
	`redis+sentinel://...?master_name=NAME`

// Open makes a client for a URL, of which where is the address without a password. It does not
// connect yet. The client tries each command once, ends it by the deadline of its context, and
// takes as long as timeout where there is none. held is how many connections to one server the
// caller keeps to itself: there may be so many besides those of commands. Open turns off the logger
// of go-redis, for the whole process. The error does not have the password in it.
func Open(rawURL string, timeout time.Duration, held int) (client redis.UniversalClient, where string, err error) {
	client, err = newClient(rawURL, timeout, held)
	if err != nil {
		// url.Error has the whole URL in it, and that a password.
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		if hasLostPassword(rawURL) {
			err = errors.New(`what is before the "@" is not USER:PASSWORD; write "/", "?", "#", "@" and "%" in it as ` +
				`%2F, %3F, %23, %40 and %25`)
		}
		return nil, "", fmt.Errorf("bad URL: %s; %s", strings.TrimPrefix(err.Error(), "redis: "), urlForm)
	}
	logging.Disable()
	if where = Where(client); where == failoverAddr {
		if u, err := url.Parse(rawURL); err == nil {
			where = "the primary that " + u.Host + " knows"
		}
	}
	return client, where, nil
}

// Where returns where a client's Redis is, without a password.
func Where(c redis.UniversalClient) string {
	switch c := c.(type) {
	case *redis.Client:
		return c.Options().Addr
	case *redis.ClusterClient:
		return strings.Join(c.Options().Addrs, ",")
	case *redis.Ring:
		return "the ring"
	}
	return "its address"
}

// failoverAddr is what go-redis has for the address of a client that asks
// sentinels for it.
const failoverAddr = "FailoverClient"

// hasLostPassword reports whether a password may be in a URL elsewhere than where it
// belongs, and so in the error about that part.
func hasLostPassword(rawURL string) bool {
	u, err := url.Parse(rawURL)
	// With an "@" in it, what follows the first may have ended the host.
	return strings.Contains(rawURL, "@") &&
		(err != nil || u.User == nil || strings.Contains(u.EscapedPath()+u.RawQuery, "@"))
}

// hasLostParameter reports whether go-redis would leave out a parameter, such as a password,
// since it cannot be read.
func hasLostParameter(rawURL string) bool {
	u, err := url.Parse(rawURL)
	if err != nil {
		return false // go-redis says why
	}
	_, err = url.ParseQuery(u.RawQuery)
	return err != nil
}

// newClient makes a client. timeout is for what has no deadline of a decision:
// connections made by warm, which may take longer.
func newClient(rawURL string, timeout time.Duration, held int) (redis.UniversalClient, error) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	base, kind, _ := strings.Cut(scheme, "+")
	plain := base + "://" + rest
	switch {
	case !ok:
		return nil, errors.New("no scheme")
	case hasLostParameter(plain):
		return nil, errors.New(`a parameter cannot be read; write "%" and ";" in it as %25 and %3B`)
	case kind == "cluster":
		o, err := redis.ParseClusterURL(plain)
		if err != nil {
			return nil, err
		}
		o.ContextTimeoutEnabled = true
		o.MaxRetries, o.DialerRetries = -1, 1
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = timeout, timeout, timeout, timeout
		o.Dialer = dialer(o.TLSConfig, timeout)
		o.PoolSize = poolSize(o.PoolSize, 5, held)
		o.DisableIdentity = true
		// After a server has failed nothing else has go-redis look for the one that has taken over.
		o.ClusterStateReloadInterval = 5 * time.Second
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		return redis.NewClusterClient(o), nil
	case kind == "sentinel":
		o, err := redis.ParseFailoverURL(plain)
		if err != nil {
			return nil, err
		}
		if o.MasterName == "" {
			return nil, errors.New("no master_name")
		}
		o.ContextTimeoutEnabled = true
		o.MaxRetries, o.DialerRetries = -1, 1
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = timeout, timeout, timeout, timeout
		o.Dialer = dialer(o.TLSConfig, timeout)
		o.PoolSize = poolSize(o.PoolSize, 10, held)
		o.DisableIdentity = true
		return redis.NewFailoverClient(o), nil
	case kind != "":
		return nil, fmt.Errorf("there is no scheme %q", scheme)
	}
	o, err := redis.ParseURL(plain)
	if err != nil {
		return nil, err
	}
	o.ContextTimeoutEnabled = true
	o.MaxRetries, o.DialerRetries = -1, 1
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = timeout, timeout, timeout, timeout
	o.PoolSize = poolSize(o.PoolSize, 10, held)
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o), nil
}

// dialer returns what dials several servers with TLS; nil without TLS. Each is verified by its
// own name, where go-redis would verify all by the first of the URL, which config has. A server
// of which only an IP address is known, since nodes and sentinels often tell no more, is
// verified by that first name, unless that is an IP address, too.
func dialer(config *tls.Config, timeout time.Duration) func(context.Context, string, string) (net.Conn, error) {
	if config == nil {
		return nil
	}
	named := net.ParseIP(config.ServerName) == nil
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		o := &redis.Options{TLSConfig: config, DialTimeout: timeout}
		if host, _, err := net.SplitHostPort(addr); err == nil && (!named || net.ParseIP(host) == nil) {
			o.TLSConfig = config.Clone()
			o.TLSConfig.ServerName = host
		}
		return redis.NewDialer(o)(ctx, network, addr)
	}
}

// poolSize is how many connections there may be to a server. size is that of the URL, or 0:
// go-redis has so many for each processor then.
func poolSize(size, each, held int) int {
	if size == 0 {
		size = each * runtime.GOMAXPROCS(0)
	}
	return size + held
}
