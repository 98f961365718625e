package load

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"time"
)

// SocketsPath is where servers echo WebSocket messages; at roomPath their connections also get what is published.
const (
	SocketsPath = "/echo"
	roomPath    = "/debug/room"
)

// Sockets sends messages over WebSocket connections that echo them, on each the next ones when all before have come
// back. One thread does it, which waits with epoll and compares what comes with what must: no more work for a message
// than wrk has for a request.
type Sockets struct {
	Addr        string
	Connections int
	Burst       int // messages in each write
	Size        int // bytes of a message
	Seconds     float64
}

// SocketsResult is what came of it.
type SocketsResult struct {
	Messages  int64 // echoed
	PerSecond float64
	// Latency is from a write to the end of the echo of all its messages.
	Mean, P50, P99 time.Duration
	Errors         int64  // connections that failed
	Fault          string // the first error
	// CPU is the processor time of the client program; Child sets it.
	CPU time.Duration `json:"-"`
}

// Child does it in a process on a core of its own. binary is the path of the program built in PaceFolder.
func (s Sockets) Child(ctx context.Context, binary string, core int) (Result, error) {
	var res SocketsResult
	used, err := inChild(ctx, binary, core, "sockets", s, &res)
	return Result{
		Requests:  res.Messages,
		PerSecond: res.PerSecond,
		Bytes:     float64(res.Messages) * float64(s.FrameSize()),
		Latency:   Latency{Mean: res.Mean, P50: res.P50, P99: res.P99},
		Errors:    Errors{Read: res.Errors},
		Fault:     res.Fault,
		CPU:       used,
	}, err
}

// Run does it in this process.
func (s Sockets) Run(ctx context.Context) (SocketsResult, error) {
	if s.Connections < 1 || s.Burst < 1 || s.Size < 0 || s.Size > 1<<16-1 || s.Seconds <= 0 {
		return SocketsResult{}, fmt.Errorf("%d messages of %d bytes in each write over %d connections for %v s", s.Burst, s.Size, s.Connections, s.Seconds)
	}
	socks := make([]socket, s.Connections)
	defer func() {
		for i := range socks {
			if c := socks[i].conn; c != nil {
				c.Close()
			}
		}
	}()
	for i := range socks {
		if err := socks[i].open(ctx, s, byte(i)); err != nil {
			return SocketsResult{}, fmt.Errorf("connection %d of %d: %w", i+1, s.Connections, err)
		}
	}
	return s.drive(ctx, socks)
}

// FrameSize is the length of a message's frame as the server sends it.
func (s Sockets) FrameSize() int { return len(binaryFrame(make([]byte, s.Size), nil)) }

// socket is one of the connections.
type socket struct {
	conn *net.TCPConn // until it is open
	fd   int          // afterwards; -1 when it has failed or is done
	out  []byte       // a burst, masked
	want []byte       // its echo
	in   []byte       // one byte more than that has, so that what nobody wants is noticed
	have int          // bytes of in
	sent time.Time
}

// open makes the handshake, and the messages, which no two connections have in common.
func (k *socket) open(ctx context.Context, s Sockets, number byte) error {
	k.fd = -1
	dialer := net.Dialer{Timeout: 5 * time.Second}
	c, err := dialer.DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return err
	}
	k.conn = c.(*net.TCPConn)
	r := bufio.NewReader(c)
	if err := upgrade(c, r, handshake(s.Addr, SocketsPath)); err != nil {
		return err
	}
	if n := r.Buffered(); n > 0 {
		return fmt.Errorf("%d bytes before any message", n)
	}
	random := rand.NewChaCha8([32]byte{number})
	payload, mask := make([]byte, s.Size), make([]byte, 4)
	for range s.Burst {
		random.Read(payload)
		random.Read(mask)
		k.out = append(k.out, binaryFrame(payload, mask)...)
		k.want = append(k.want, binaryFrame(payload, nil)...)
	}
	k.in = make([]byte, len(k.want)+1)
	return nil
}

var errEcho = errors.New("something else came back than was sent")

// came takes n more bytes into account, and reports whether the burst is complete.
func (k *socket) came(n int) (complete bool, err error) {
	k.have += n
	switch {
	case k.have < len(k.want):
		return false, nil
	case !bytes.Equal(k.in[:k.have], k.want): // opcode, length and payload of each message
		return false, errEcho
	}
	k.have = 0
	return true, nil
}

// binaryFrame is a binary message: RFC 6455, section 5.2. With a mask it is a client's.
func binaryFrame(payload, mask []byte) []byte {
	var masked byte
	if mask != nil {
		masked = 0x80
	}
	b := []byte{0x82}
	switch n := len(payload); {
	case n < 126:
		b = append(b, masked|byte(n))
	default:
		b = binary.BigEndian.AppendUint16(append(b, masked|126), uint16(n))
	}
	if mask == nil {
		return append(b, payload...)
	}
	b = append(b, mask...)
	for i, p := range payload {
		b = append(b, p^mask[i%4])
	}
	return b
}

// summary is the result of so many echoed bursts.
func (s Sockets) summary(took []time.Duration, elapsed time.Duration, failed []error) SocketsResult {
	res := SocketsResult{Messages: int64(len(took) * s.Burst), Errors: int64(len(failed))}
	if len(failed) > 0 {
		res.Fault = failed[0].Error()
	}
	if len(took) == 0 {
		return res
	}
	var total time.Duration
	for _, d := range took {
		total += d
	}
	slices.Sort(took)
	at := func(percent int) time.Duration { return took[(len(took)-1)*percent/100] }
	res.PerSecond = float64(res.Messages) / elapsed.Seconds()
	res.Mean, res.P50, res.P99 = total/time.Duration(len(took)), at(50), at(99)
	return res
}

// OpenEchoes opens WebSocket connections at SocketsPath that are to be idle, after an echo on each.
func OpenEchoes(ctx context.Context, addr string, n int, cfg *tls.Config) (*Idle, error) {
	return OpenSockets(ctx, addr, SocketsPath, n, cfg)
}
