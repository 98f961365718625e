// Package million measures a server of very many idle connections: in memory, and with real sockets as far as the
// machine's limits allow.
package million
