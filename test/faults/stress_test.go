package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// stressHandler does anything, selected by the query's number.
type stressHandler struct {
	leaks sync.WaitGroup
	stop  chan bool // closed when the server ends: blocked handlers continue
	runs  atomic.Int64
}

func (h *stressHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.runs.Add(1)
	seed, _ := strconv.ParseInt(r.URL.RawQuery, 10, 64)
	rnd := rand.New(rand.NewSource(seed))
	switch rnd.Intn(16) {
	case 0:
		time.Sleep(time.Duration(rnd.Intn(3000)) * time.Microsecond)
	case 1:
		select {
		case <-h.stop:
		case <-r.Context().Done():
		case <-time.After(time.Duration(rnd.Intn(20)) * time.Millisecond):
		}
	case 2:
		io.CopyN(io.Discard, r.Body, int64(rnd.Intn(3000)))
	case 3:
		r.Body.Close()
	case 4:
		panic(http.ErrAbortHandler)
	case 5:
		w.Write(make([]byte, rnd.Intn(10000)))
		panic(http.ErrAbortHandler)
	case 6:
		if rnd.Intn(2) == 0 {
			runtime.Goexit()
		}
	case 7:
		if rnd.Intn(2) == 0 {
			h.hijack(w)
			return
		}
	case 8:
		// A goroutine uses the body and the response at any time.
		h.leaks.Go(func() {
			b := make([]byte, 1000)
			for range 20 {
				_, err := r.Body.Read(b)
				runtime.Gosched()
				if err != nil {
					break
				}
			}
			r.Context().Done()
			r.Context().Err()
		})
	case 9:
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Millisecond))
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Second))
	case 10:
		returned := make(chan bool)
		defer close(returned)
		h.leaks.Go(func() {
			http.NewResponseController(w).SetReadDeadline(time.Now())
			<-returned
			http.NewResponseController(w).SetReadDeadline(time.Now())
			http.NewResponseController(w).Flush()
		})
	case 11:
		<-r.Context().Done()
	}
	n := rnd.Intn(3000)
	if rnd.Intn(8) == 0 {
		n = rnd.Intn(1 << 20)
	}
	if rnd.Intn(2) == 0 {
		w.Header().Set("Content-Length", strconv.Itoa(n))
	}
	w.Header().Set("X-Query", r.URL.RawQuery)
	body := stressAnswer(r.URL.RawQuery, n)
	for len(body) > 0 {
		k := min(rnd.Intn(100000)+1, len(body))
		if _, err := io.WriteString(w, body[:k]); err != nil {
			return
		}
		body = body[k:]
	}
}

func (h *stressHandler) hijack(w http.ResponseWriter) {
	nc, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(5 * time.Millisecond))
	rw.ReadByte()
	io.WriteString(nc, "HTTP/1.1 299 Hijacked\r\nContent-Length: 0\r\n\r\n")
}

func stressAnswer(query string, n int) string {
	return strings.Repeat(query+";", n/(len(query)+1)+1)[:n]
}

// stressVisit is a client that does anything; it reports a response that is
// complete and wrong.
func stressVisit(addr string, rnd *rand.Rand) error {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(servertest.Patience))
	r := bufio.NewReader(nc)
	var asked []string
	for range 1 + rnd.Intn(10) {
		query := strconv.FormatInt(rnd.Int63(), 10)
		body := strings.Repeat("b", rnd.Intn(2000))
		var req string
		switch rnd.Intn(4) {
		case 0:
			req = fmt.Sprintf("POST /?%s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", query, len(body), body)
		case 1:
			req = fmt.Sprintf("POST /?%s HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", query, len(body)+1, body+"c")
		default:
			req = fmt.Sprintf("GET /?%s HTTP/1.1\r\nHost: h\r\n\r\n", query)
		}
		asked = append(asked, query)
		if rnd.Intn(4) == 0 {
			k := rnd.Intn(len(req))
			io.WriteString(nc, req[:k])
			switch rnd.Intn(20) {
			case 0:
				nc.(*net.TCPConn).SetLinger(0)
				return nil
			case 1:
				nc.(*net.TCPConn).CloseWrite()
			case 2:
				time.Sleep(time.Duration(rnd.Intn(60)) * time.Millisecond) // a stall
			}
			req = req[k:]
		}
		if _, err := io.WriteString(nc, req); err != nil {
			break
		}
		if rnd.Intn(30) == 0 {
			nc.(*net.TCPConn).SetLinger(0)
			return nil
		}
		for len(asked) > 0 && rnd.Intn(3) > 0 {
			if more, err := stressRead(r, &asked); !more {
				return err
			}
		}
	}
	nc.(*net.TCPConn).CloseWrite()
	for len(asked) > 0 {
		if more, err := stressRead(r, &asked); !more {
			return err
		}
	}
	return nil
}

func stressRead(r *bufio.Reader, asked *[]string) (more bool, err error) {
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		var ne net.Error
		if errors.As(err, &ne) && ne.Timeout() {
			return false, fmt.Errorf("no answer and no end: %w", err)
		}
		return false, nil
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 {
		return false, nil // cut or refused: the connection is over
	}
	query := (*asked)[0]
	*asked = (*asked)[1:]
	if got := res.Header.Get("X-Query"); got != "" && got != query {
		return false, fmt.Errorf("the response to %s came for %s", got, query)
	}
	if res.Header.Get("X-Query") != "" && string(body) != stressAnswer(query, len(body)) {
		return false, fmt.Errorf("the response to %s is wrong", query)
	}
	return !res.Close, nil
}

func TestFaultsStress(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		rounds := 4
		if testing.Short() {
			rounds = 1
		}
		for i := range rounds {
			stressServer(t, e, time.Now().UnixNano()+int64(i))
		}
	})
}

func stressServer(t *testing.T, e chert.Engine, seed int64) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	rnd := rand.New(rand.NewSource(seed))
	h := &stressHandler{stop: make(chan bool)}
	fs := engines.StartCounting(t, &chert.Server{
		Engine: e, Handler: h, ReadHeaderTimeout: 40 * time.Millisecond, IdleTimeout: 40 * time.Millisecond,
		ReadStallTimeout: 30 * time.Millisecond, WriteStallTimeout: 200 * time.Millisecond,
	})
	const n = 40
	errs := make(chan error, n)
	for range n {
		mine := rand.New(rand.NewSource(rnd.Int63()))
		go func() {
			var err error
			for range 10 {
				if err = stressVisit(fs.ListenAddr, mine); err != nil {
					break
				}
			}
			errs <- err
		}()
	}
	many, kind := int64(rnd.Intn(600)), rnd.Intn(3)
	for begin := time.Now(); h.runs.Load() < many && time.Since(begin) < 2*time.Second; {
		runtime.Gosched()
	}
	// A handler may wait for its client's end, so a shutdown alone need not
	// end; it does when clients give up or Close forces it.
	if kind > 0 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rnd.Intn(100))*time.Millisecond)
		fs.Shutdown(ctx)
		cancel()
	}
	close(h.stop)
	fs.Close()
	for range n {
		if err := servertest.Await(t, errs, "the clients"); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
	defer cancel()
	if err := fs.Shutdown(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Errorf("something did not end: %v", err)
	}
	h.leaks.Wait()
	fs.Settled(0)
}
