package handler

import (
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/lab/work"
)

// streams are the handlers of large bodies. They count the Reads of requests' bodies, and what those gave.
type streams struct {
	reads, bytes atomic.Int64
}

func (s *streams) register(mux *http.ServeMux) {
	mux.HandleFunc("POST /stream/echo", s.echo)
	mux.HandleFunc("POST /stream/take", s.take)
	// Below debug: the ninth segment that begins a path would make ServeMux look all of them up in a map.
	mux.HandleFunc("GET /debug/give", s.give)
	mux.HandleFunc("GET /debug/reads", encoded(func() ([]byte, error) {
		return work.ReadsJSON(s.reads.Load(), s.bytes.Load())
	}))
}

// counted is a body whose Reads are counted.
type counted struct {
	io.Reader
	s *streams
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.s.reads.Add(1)
	c.s.bytes.Add(int64(n))
	return n, err
}

// writer hides what else a Writer can do from io.Copy, which then uses the buffer it is given.
type writer struct{ io.Writer }

var copyBuffers = sync.Pool{New: func() any { return new([work.StreamPiece]byte) }}

// echo sends back what comes, as it comes.
func (s *streams) echo(w http.ResponseWriter, r *http.Request) {
	http.NewResponseController(w).EnableFullDuplex()
	w.Header().Set("Content-Type", "application/octet-stream")
	s.copy(w, r)
}

// take reads the body and says how long it was.
func (s *streams) take(w http.ResponseWriter, r *http.Request) {
	text(w, strconv.FormatInt(s.copy(io.Discard, r), 10))
}

// copy gives w the body in pieces. What is cut short is an error that the client must see.
func (s *streams) copy(w io.Writer, r *http.Request) int64 {
	buf := copyBuffers.Get().(*[work.StreamPiece]byte)
	defer copyBuffers.Put(buf)
	n, err := io.CopyBuffer(writer{w}, counted{r.Body, s}, buf[:])
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return n
}

// give writes the requested number of bytes, with a Content-Length on request.
func (s *streams) give(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	size, err := strconv.ParseInt(q.Get("bytes"), 10, 64)
	if err != nil || size < 0 {
		http.Error(w, "bytes: how many?", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if q.Has("length") {
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	}
	buf := copyBuffers.Get().(*[work.StreamPiece]byte)
	defer copyBuffers.Put(buf)
	for size > 0 {
		n, err := w.Write(buf[:min(size, int64(len(buf)))])
		if err != nil {
			return
		}
		size -= int64(n)
	}
}
