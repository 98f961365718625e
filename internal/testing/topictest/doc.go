// Package topictest tests topics of package eventstream that processes share through a store:
// the same tests for all stores.
package topictest

// Only tests may import it. It runs clients over sockets against chert's server.
