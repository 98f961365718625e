// Package coding provides content codings: it selects one that the client accepts
// (RFC 9110 section 12.5.3), knows which media types are worth compressing, and
// pools the encoders of gzip, br and zstd, each of which holds megabytes.
package coding

// It takes bytes and writers. It must not know requests, responses, files or
// caches. It imports std and the encoders; nothing that the root imports may
// import it, so that users of chert.Server need no encoder. static and
// middleware may.
