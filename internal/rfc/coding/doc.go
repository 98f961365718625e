// Package coding is what a server needs of content codings: which one a client
// takes (RFC 9110 section 12.5.3), which types gain by one, and the encoders of
// gzip, br and zstd, pooled, because each holds megabytes.
//
// It takes bytes and writers. It must not know requests, responses, files or
// caches. It imports std and the encoders; nothing that the root imports may
// import it, so that users of chert.Server need no encoder. static and
// middleware may.
package coding
