// Package behave has tests of what the server does, by subject, on each engine and
// where the behaviour is to be net/http's on that too. It is tests only.
package behave
