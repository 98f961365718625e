// Package attack measures what clients that mean harm cost the others: the latency of innocent clients beside an
// attack, and the server's processor time and memory, on chert and on net/http.
package attack
