// Package redistest starts redis-server for tests: alone, as a replica, as a
// sentinel, as a cluster; and stops, kills and restarts it. Without the program
// tests are skipped, or fail if CHERT_REQUIRE_ALL is 1.
//
// It speaks a word of Redis's protocol itself, so that it knows no client. Only
// tests may import it.
package redistest
