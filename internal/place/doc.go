// Package place judges from past runs which requests are answered quickly, so
// that their handlers may run on an event loop.
//
// It knows methods, paths and durations; it must not know connections, loops
// or HTTP's messages. It imports std only. bridge may import it.
//
// # Records
//
// The routes of a foreign mux are not known, so a record is kept for each
// prefix of one to three path segments, together with the method: a run of
// "GET /api/v1/users/7" counts for "/api", "/api/v1" and "/api/v1/users". A
// request is quick when one of its prefixes is proven.
//
//	             proveAfter<<strikes quick runs
//	unproven ----------------------------------------> proven
//	   ^                                                  |
//	   +--------------------------------------------------+
//	     a run that cost the loop its driver: none are left, and strikes+1,
//	     up to maxStrikes
//	     slow otherwise: slowCosts less, or that part of a long history
//
// So a prefix that has quick and slow routes under it is tried seldom, while a
// longer prefix without a slow route is proven by itself. A strike is forgiven
// after as many quick runs more as the proof took.
//
// A new record begins with a strike less than the prefix before its own has: else
// a client that chooses paths would find records without strikes below a prefix
// that has them.
//
// A router that says which of its routes a request takes spares all that: in a
// table of NewRoutes each pattern has a record of its own.
//
// # The brake
//
// Each proof is good for one overstay, and where there are wildcards thousands can
// be hoarded. So overstays of all requests are counted together, and more than a
// few in a short time make all proofs harder for a while (brake.go).
//
// # Bounds
//
// The table has a fixed size. A new prefix takes a free place of its set, or
// wears down the unproven record that has the fewest runs and strikes. Only where
// all of a set are proven it displaces one of them, once in 64 times. Requests for
// random paths therefore do not grow the table, and cost what is proven a new proof
// now and then at worst. Hashing is seeded, so nobody can aim at a set.
package place
