package redisstore

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const urlForm = `want redis://[USER:PASSWORD@]HOST:PORT[/DB], rediss:// for TLS, unix:///PATH, redis+cluster:// or ` +
	`redis+sentinel://...?master_name=NAME`

// OpenURL returns a Store with a client of its own, which Close closes. It does not
// connect yet; see Check. The URL is one of
//
//	redis://USER:PASSWORD@HOST:PORT/DB           rediss:// for TLS
//	unix://USER:PASSWORD@/PATH?db=DB
//	redis+cluster://HOST:PORT?addr=HOST2:PORT    rediss+cluster://
//	redis+sentinel://HOST:PORT/DB?master_name=NAME&addr=HOST2:PORT
//
// with more parameters as in redis.ParseURL, ParseClusterURL, ParseFailoverURL.
//
// OpenURL turns off the logger of go-redis, for the whole process: it would log a
// line for each connection that fails, which Logger receives once a second.
func OpenURL(rawURL string, o *Options) (*Store, error) {
	opt, err := o.defaults()
	if err != nil {
		return nil, err
	}
	client, err := newClient(rawURL, max(checkTime, opt.Timeout))
	if err != nil {
		// url.Error has the whole URL in it, and that a password.
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		if hasLostPassword(rawURL) {
			err = errors.New(`what is before the "@" is not USER:PASSWORD; write "/", "?", "#", "@" and "%" in it as ` +
				`%2F, %3F, %23, %40 and %25`)
		}
		return nil, fmt.Errorf("redisstore: bad URL: %s; %s", strings.TrimPrefix(err.Error(), "redis: "), urlForm)
	}
	logging.Disable()
	s, err := New(client, &opt)
	if err != nil {
		client.Close()
		return nil, err
	}
	s.owned = true
	if s.where == failoverAddr {
		if u, err := url.Parse(rawURL); err == nil {
			s.where = "the primary that " + u.Host + " knows"
		}
	}
	return s, nil
}

// failoverAddr is what go-redis has for the address of a client that asks
// sentinels for it.
const failoverAddr = "FailoverClient"

// hasLostPassword reports whether a password may be in a URL elsewhere than where it
// belongs, and so in the error about that part.
func hasLostPassword(rawURL string) bool {
	u, err := url.Parse(rawURL)
	return strings.Contains(rawURL, "@") && (err != nil || u.User == nil)
}

// newClient makes a client. timeout is for what has no deadline of a decision:
// connections made by warm, which may take longer.
func newClient(rawURL string, timeout time.Duration) (redis.UniversalClient, error) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	base, kind, _ := strings.Cut(scheme, "+")
	plain := base + "://" + rest
	switch {
	case !ok:
		return nil, errors.New("no scheme")
	case kind == "cluster":
		o, err := redis.ParseClusterURL(plain)
		if err != nil {
			return nil, err
		}
		o.ContextTimeoutEnabled = true
		o.MaxRetries, o.DialerRetries = -1, 1
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = timeout, timeout, timeout, timeout
		o.DisableIdentity = true
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
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o), nil
}

// describe returns where a client's Redis is, without a password, whether claims with
// different keys need a script each, and whether the client keeps deadlines.
func describe(c redis.UniversalClient) (where string, split, deadlines bool) {
	switch c := c.(type) {
	case *redis.Client:
		o := c.Options()
		return o.Addr, false, o.ContextTimeoutEnabled
	case *redis.ClusterClient:
		o := c.Options()
		return strings.Join(o.Addrs, ","), true, o.ContextTimeoutEnabled
	case *redis.Ring:
		o := c.Options()
		return "the ring", true, o.ContextTimeoutEnabled
	}
	return "its address", true, true
}
