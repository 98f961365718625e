package netdiff

import (
	"testing"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// TestMain fails if the tests leave goroutines, descriptors or pooled buffers.
func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

const switched = servertest.Switched

type ctxKey string

// Short names for the tables.
var (
	ask        = servertest.Ask
	ask10      = servertest.Ask10
	post       = servertest.Post
	postChunks = servertest.PostChunks
	rawHead    = servertest.RawHead
	set        = servertest.Set
	put        = servertest.Put
	flush      = servertest.Flush
)
