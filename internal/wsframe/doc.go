// Package wsframe implements the WebSocket protocol's frames, as in RFC 6455: it
// parses and checks what a peer sends, and appends frames to buffers.
package wsframe

// It is a codec: bytes in, values out, without I/O and without buffers of its
// own. It may import nothing but std; package websocket and the root may import
// it.
//
// A Reader is the state of one direction of a connection. Next consumes bytes
// from the start of a buffer and returns pieces of messages: payloads are
// unmasked where they are, so a message that is complete in the buffer is never
// copied. A frame's header, and a whole control frame, are consumed only when
// they are complete, so the caller's buffer is the only one, and a Reader between
// two frames is a few words.
