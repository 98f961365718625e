// Package coding is about content codings: it selects one that the client accepts
// (RFC 9110 section 12.5.3), and knows which media types are worth compressing.
package coding

// It takes bytes. It must not know requests, responses, files or caches, nor the encoders,
// which are in internal/rfc/encode.
