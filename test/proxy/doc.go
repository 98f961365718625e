// Package proxy tests package proxy on all engines and on net/http's server, with requests
// and responses as bytes on sockets: those of a client on one side, and of servers that
// record what they receive on the other.
package proxy
