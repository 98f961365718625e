// Package ratelimit says who may ask how often.
//
//	rate, err := ratelimit.ParseRate("100/s burst 200")
//	...
//	h, err := ratelimit.Handler(mux, &ratelimit.Options{
//		Rules: []ratelimit.Rule{{Name: "address", Rate: rate}},
//	})
//
// A limit is a bucket for each key: it holds Burst tokens, is filled at the
// Rate, and a request takes one or more. The algorithm is GCRA, which keeps one
// number for a bucket: the time at which it will be full again. Over any time t
// it admits Burst + t*Count/Per and not one more.
//
// The buckets are in a [Store]. [Memory] is that of one process; package
// redisstore, below this one, shares them between many. Their arithmetic is the
// same, in nanoseconds, so they decide alike.
//
// [Limit] is for use without HTTP: jobs, logins, messages of a WebSocket.
//
// # What is exact
//
// No race admits a token too many, in either store. Where several limits are
// asked at once all must admit, and none is charged when one refuses. In Redis
// that is one script. In Memory all are looked at first, and only if all would
// admit they are charged one after the other; should a race take the last token
// of one meanwhile, the others get theirs back. Until then, some hundred
// nanoseconds, another request may be refused for a token that comes back.
//
// A bucket that several processors charge all the time is charged for some tokens
// at once, which each spends by itself; they are called in before anybody is
// refused. Until then Remaining and Reset of an admitted request count them as
// taken: there may be more than they say, by a 64th for each processor.
//
// The package imports std and direct. It must not know servers, nor any store
// but its own. Anything may import it.
package ratelimit
