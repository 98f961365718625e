// Package place predicts from past runs which requests are answered quickly, so
// that their handlers may run on an event loop.
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
//	     a run that cost the loop its driver: back to none, and strikes+1,
//	     up to maxStrikes
//	     otherwise slow: slowCosts less, or that part of a long history
//
// So a prefix with both quick and slow routes under it is tried rarely, while a
// longer prefix without a slow route is proven by itself. A strike is removed
// after as many further quick runs as the proof took.
//
// A new record starts with one strike less than the next shorter prefix has.
// Otherwise a client that chooses paths would find records without strikes below
// a prefix that has them.
//
// A router that reports which of its routes matched needs none of this: in a
// table of NewRoutes each pattern has a record of its own.
//
// # The brake
//
// Each proof allows one overstay, and with wildcards a client can collect
// thousands of proofs. So overstays of all requests are counted together, and more
// than a few in a short time make all proofs harder for a while (brake.go).
//
// # Bounds
//
// The table has a fixed size. A new prefix takes a free slot of its set, or wears
// down the unproven record with the fewest runs and strikes. Only if all records of
// a set are proven does it displace one of them, once in 64 times. Requests for
// random paths therefore do not grow the table, and at worst make a proven record
// prove itself again now and then. Hashing is seeded, so no client can target a
// set.
package place

// It knows methods, paths and durations; it must not know connections, loops
// or HTTP's messages. It imports std only. bridge may import it.
