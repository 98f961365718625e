// Package behave tests what the server does, by subject, on each engine and,
// where the behaviour should be net/http's, on that too. It contains tests
// only.
package behave
