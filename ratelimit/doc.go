// Package ratelimit limits request rates per key.
//
//	rate, err := ratelimit.ParseRate("100/s burst 200")
//	...
//	limit, err := ratelimit.New(&ratelimit.Options{
//		Rules: []ratelimit.Rule{{Name: "address", Rate: rate}},
//	})
//	...
//	h := limit(mux)
//
// Each key has a bucket of Burst tokens, which is refilled at the Rate; a request
// takes one token or more. The algorithm is GCRA: over any time t a bucket admits
// at most Burst + t*Count/Per tokens.
//
// A [Store] keeps the buckets: [Memory] those of one process, and package
// redisstore those that several processes share, with the same arithmetic. [Limit]
// is for use without HTTP: jobs, logins, messages of a WebSocket.
//
// No race admits a token too many. Where a request has several limits, all must
// admit it, and none is charged if one does not.
package ratelimit

// The package imports std, direct, filter and internal packages. It must not
// depend on servers, nor on stores other than its own. Any package may import
// it.
