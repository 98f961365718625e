// Package redistest starts redis-server for tests, alone, as a replica, as a
// sentinel or as a cluster, and stops, kills and restarts it. Without the program
// tests are skipped, or fail if CHERT_REQUIRE_ALL is 1.
package redistest

// It implements the small part of Redis's protocol that it needs, so that it
// depends on no client. Only tests may import it.
