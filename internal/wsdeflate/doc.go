// Package wsdeflate implements the WebSocket extension permessage-deflate
// (RFC 7692): its negotiation, and messages compressed and inflated.
package wsdeflate

// Nothing here belongs to a connection for longer than a call: compressors and
// decompressors are borrowed from pools, and context takeover is a Window, the last
// plain bytes of one direction, with which a borrowed one is primed. A compressor
// is hundreds of kilobytes, a Window is 4 KiB by default. A message that was
// compressed without a window is valid on any connection with the same or a larger
// one, so a broadcast is compressed once.
//
// It knows no frames. Package websocket may import it.
