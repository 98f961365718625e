// Package encode compresses with the content codings gzip, br and zstd, by pooled encoders,
// each of which holds megabytes.
package encode

// Nothing that the root imports may import it, so that users of chert.Server need no
// encoder. static and middleware may.
