package http3

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/internal/onquic"
)

// newPair is newConnPair with a server of chert.
func newPair(t *testing.T, _ ...connPairOpt) (client, server *quic.Conn) { return newPairOf(t, nil) }

// newPairOf is newPair with the limits of s.
func newPairOf(t *testing.T, s *onquic.Server) (client, server *quic.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, server, done, err := onquic.Pair(ctx, s, getTLSConfig(), getTLSClientConfig())
	require.NoError(t, err)
	t.Cleanup(done)
	return client, server
}
