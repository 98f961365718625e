package redisstore

import (
	"fmt"

	"github.com/chert-http/chert/internal/redisconn"
	"github.com/redis/go-redis/v9"
)

// OpenURL returns a Store with a client of its own, which Close closes. It does not
// connect yet; see Check. The URL is one of
//
//	redis://USER:PASSWORD@HOST:PORT/DB           rediss:// for TLS
//	unix://USER:PASSWORD@/PATH?db=DB
//	redis+cluster://HOST:PORT?addr=HOST2:PORT    rediss+cluster://
//	redis+sentinel://HOST:PORT/DB?master_name=NAME&addr=HOST2:PORT
//
// with more parameters as in redis.ParseURL, ParseClusterURL, ParseFailoverURL. With TLS each
// server of a Cluster and each that sentinels name is verified by its own name, or by HOST if
// it is known by an IP address only and HOST is a name.
//
// OpenURL turns off the logger of go-redis, for the whole process: it would log a
// line for each connection that fails, which Logger receives once a second.
func OpenURL(rawURL string, o *Options) (*Store, error) {
	opt, err := o.defaults()
	if err != nil {
		return nil, err
	}
	client, where, err := redisconn.Open(rawURL, max(checkTime, opt.Timeout), 0)
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	s, err := New(client, &opt)
	if err != nil {
		client.Close()
		return nil, err
	}
	s.owned, s.where = true, where
	return s, nil
}

// describe reports whether claims with different keys need a script each, and whether the client
// keeps deadlines.
func describe(c redis.UniversalClient) (split, deadlines bool) {
	switch c := c.(type) {
	case *redis.Client:
		return false, c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		return true, c.Options().ContextTimeoutEnabled
	case *redis.Ring:
		return true, c.Options().ContextTimeoutEnabled
	}
	return true, true
}
