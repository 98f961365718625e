// Package balance chooses the server of an upstream that gets a request: by smooth
// weighted round robin, by two random choices, or by a consistent hash.
//
// A [Server] is an address with what is shared about it: its state, as health checks
// and operators set it, its requests in flight and its latency. A [Set] is an immutable
// list of servers with weights and a [Policy]. Its owner replaces a Set when names
// resolve differently or the configuration changes; the servers stay, and so do their
// counts. [Set.Acquire] chooses a server and counts a request on it, [Server.Release]
// takes the request from the count. All of it is safe for concurrent use, and Acquire
// allocates only if a state has changed since the last call, or during a slow start.
//
// # Policies
//
//   - [RoundRobin] is nginx's smooth weighted round robin: with weights 5, 1 and 1 the order
//     is a a b a c a a. HAProxy calls its form roundrobin, Envoy ROUND_ROBIN.
//   - [Least] draws two servers by weight and takes that of the lower cost, the latency
//     times the requests in flight: M. Mitzenmacher, "The power of two choices in randomized
//     load balancing", IEEE TPDS 12(10), 2001. The latency is Finagle's peak EWMA. HAProxy:
//     random(2); Envoy: LEAST_REQUEST; Linkerd: EWMA.
//   - [Hash] is weighted rendezvous hashing: D. Thaler and C. Ravishankar, "Using name-based
//     mappings to increase hit rates", IEEE/ACM ToN 6(1), 1998, with the weights of
//     C. Schindelhauer and G. Schomaker, "Weighted distributed hash tables", SPAA 2005. With
//     Options.Bound it has the bounded loads of V. Mirrokni, M. Thorup and M. Zadimoghaddam,
//     "Consistent hashing with bounded loads", SODA 2018 (arXiv 1608.01350, 2016). HAProxy:
//     hash-balance-factor; Envoy: hash_balance_factor; Caddy: its hash policies.
//   - [Sticky] is Hash on a random cookie, so that sessions need no table.
//
// # Which servers may get a request
//
// Servers of weight 0 and those that are Down get nothing, and Ejected ones get nothing
// but under the panic rule. A Probing one gets one request at a time. One that drains gets
// nothing, with one exception: under Sticky it keeps the keys at home with it that clients
// bring back.
//
// Backups get requests only if no other server can: because of their states, or because
// the request has been tried on all of them.
//
// The panic rule: if fewer than half of the weight that does not drain is up, Ejected and
// Probing servers are used as if they were up. The remaining ones would otherwise get more
// than they can serve, and fail too. Servers that an active check has found Down stay so.
// If no primary is up but a backup is, that is used instead. The rule is Envoy's panic
// threshold of 50 %, without a second threshold that limits ejections.
//
// Slow start: a server that has come back gets a tenth of its weight at first, and all of
// it after Options.SlowStart. One that drained under Sticky has kept its sessions, and gets
// all at once.
//
// # Agreement
//
// The hashes have fixed seeds and need no floating point, so all processes with the same
// servers and weights agree on where a key is at home, whatever their systems and the order
// of their lists. Clients can therefore choose keys for one server, if the key is something
// that they choose, as a path is: bounded loads are the defence. The state of servers,
// bounds and slow starts are what a process knows, and may differ.
package balance

// The package opens no sockets, starts no goroutines and reads no clock: times are int64
// nanoseconds of any monotonic clock, as in internal/timer, and random numbers are the
// caller's.
//
// It imports std and xxhash. It must not know what makes a server healthy, nor what a
// request is.
