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
//	           proveAfter<<strikes quick runs without a slow one
//	unproven ----------------------------------------------------> proven
//	   ^                                                             |
//	   +-------------------------------------------------------------+
//	     a run that cost the loop its driver: strikes+1, up to maxStrikes
//	     slow otherwise: strikes as they were
//
// So a prefix that has quick and slow routes under it is tried ever more
// seldom, while a longer prefix without a slow route is proven by itself.
//
// A new record begins with the strikes of the prefixes before its own, up to
// maxInherited: else whoever chooses paths would find a record without strikes below
// each prefix that has them.
//
// # The brake
//
// A proof is worth an overstay to who means to be slow, and where wildcards allow it,
// thousands can be hoarded. So overstays of all requests are counted together, and
// more than a few in a short time make all proofs harder for a while (brake.go).
//
// A router that says which of its routes a request takes spares all that: in a
// table of NewRoutes each pattern has a record of its own.
//
// # Bounds
//
// The table has a fixed size. A new prefix takes a free place of its set, or
// wears down the unproven record that has least runs and strikes. Only where all of a set are
// proven it displaces one of them, once in 64 times. Requests for random paths
// therefore do not grow the table, and cost what is proven a new proof now and
// then at worst. Hashing is seeded, so nobody can aim at a set.
package place
