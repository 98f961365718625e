// Package redisconn makes clients of Redis from URLs, and explains their errors to operators.
package redisconn

// It is what the packages that keep something in Redis share, and knows nothing of them. It
// imports go-redis, so only packages that need Redis may import it.
