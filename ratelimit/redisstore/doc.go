// Package redisstore shares the buckets of package ratelimit between processes
// through Redis: a single server, a primary found by Sentinel, or a Cluster.
//
//	store, err := redisstore.OpenURL("redis://127.0.0.1:6379/0", nil)
//	...
//	if err := store.Check(ctx); err != nil {
//		return err // one line: what is wrong
//	}
//	limit, err := ratelimit.NewLimit("login", rate, store)
//
// A decision is one Lua script and one round trip. The script runs atomically and
// reads the clock of Redis, so that all processes see one bucket and one time. It
// needs Redis 5 or later.
//
// A bucket is a key PREFIX{KEY}:LIMIT that expires a second after it is full. A
// Cluster keeps all limits of one KEY on one node, and decides claims with the same
// KEY in one script. It decides others one after the other, with a round trip each;
// when one is refused the earlier ones are refunded.
//
// A decision is tried once. (In a Cluster the client follows redirections and retries
// when a connection breaks; that may charge twice, but never admits too many.) When
// Redis fails or takes longer than Timeout, the failure policy decides. After several
// failures in a row Redis is not asked for a while, and then by one request at a
// time.
//
// Redis loses buckets when it is restarted without persistence, and a replica that
// takes over may lack the latest charges. Both admit more than the limit.
package redisstore

// The package imports ratelimit, go-redis and gobreaker, so that ratelimit need
// not. It must not depend on HTTP. Any package may import it.
