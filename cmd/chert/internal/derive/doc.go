// Package derive derives keys from a secret that instances share: of TLS session tickets, which
// change every day, and of what they keep in a store.
package derive

// It knows neither TLS configurations nor stores. Only the command may import it.
