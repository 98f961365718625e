// Package percent is percent-encoding (RFC 3986 section 2.1). What stands for
// itself differs by where it is to stand, so each caller has its own Set.
//
// It imports nothing of the module. static, listing and cmd/chert import it.
package percent
