// Package redisstore shares the buckets of package ratelimit between processes,
// through Redis: one server, one behind Sentinel, or a Cluster.
//
//	store, err := redisstore.OpenURL("redis://127.0.0.1:6379/0", nil)
//	...
//	if err := store.Check(ctx); err != nil {
//		return err // one line: what is wrong
//	}
//	limit, err := ratelimit.NewLimit("login", rate, store)
//
// A decision is one Lua script and one round trip. The script runs alone in
// Redis and reads Redis's clock, so that all processes see one bucket and one
// time, and none of theirs matters. Redis 5 or later is needed, for scripts that
// read the clock and write.
//
// A bucket is a key PREFIX{KEY}:LIMIT with two numbers in it, and expires a
// second after it is full. What stands in braces is what a Cluster places keys
// by: the limits of one KEY are on one node, and several of them are one script.
// Claims with different KEYs cannot be in a Cluster: they are decided one after
// the other, a round trip each, and the earlier ones get their tokens back when
// a later one refuses.
//
// Redis is asked once. (In a Cluster the client follows redirections, and tries
// again when a connection breaks: that may charge twice, and never admits too
// many.) What fails, or takes longer than Timeout, is decided by the policy for
// failures. After some failures in a row Redis is left alone for a while, and
// then tried by one request at a time. Connections that take longer than Timeout
// are made in the background.
//
// Redis forgets the buckets when it is restarted without persistence, and a
// replica that takes over may lack the last moments. Both err to the client's
// advantage.
//
// The package imports ratelimit, go-redis and gobreaker, and is why ratelimit
// does not. It must not know HTTP. Anything may import it.
package redisstore
