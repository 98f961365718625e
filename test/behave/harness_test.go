package behave

import (
	"net/http"
	"testing"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// TestMain fails if the tests leave goroutines, descriptors or pooled buffers.
func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

// unlike begins the reason of a case in which chert differs from net/http
// intentionally.
const unlike = "unlike net/http: "

type hf = http.HandlerFunc

// Short names for the tables.
var (
	ask        = servertest.Ask
	ask10      = servertest.Ask10
	post       = servertest.Post
	postChunks = servertest.PostChunks
	set        = servertest.Set
	put        = servertest.Put
	flush      = servertest.Flush
)
