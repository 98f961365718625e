// Package outboxtest checks that a carrier accepts and refuses what all others do.
package outboxtest

// It knows package outbox and no carrier: a package that implements one calls Offers from
// its own tests. Only tests import it.
