package handler

import (
	"io"
	"net/http"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/chert-http/chert/lab/work"
)

// New returns the handler.
func New() http.Handler {
	e := events{clients: make(map[chan []byte]bool)}
	return WithEvents(&e, e.publish)
}

func withoutEvents() *http.ServeMux {
	var turning work.Turning
	var streams streams
	mux := http.NewServeMux()
	streams.register(mux)
	mux.HandleFunc("GET /{$}", after(func() {}))
	mux.HandleFunc("GET /sleep", after(work.Sleep))
	mux.HandleFunc("GET /compute", after(work.Compute))
	mux.HandleFunc("GET /turning", after(turning.Do))
	mux.HandleFunc("GET /turn", func(w http.ResponseWriter, r *http.Request) {
		if err := turning.To(r.URL.Query().Get("to")); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	mux.HandleFunc("GET /users/{user}/posts/{post}", func(w http.ResponseWriter, r *http.Request) {
		text(w, work.Post(r.PathValue("user"), r.PathValue("post")))
	})
	mux.HandleFunc("POST /form", form)
	mux.HandleFunc("GET /items", encoded(work.ItemsJSON))
	mux.HandleFunc("POST /upload", upload)
	mux.HandleFunc("GET /debug/stats", encoded(work.ProcessJSON))
	mux.HandleFunc("GET /debug/gc", func(http.ResponseWriter, *http.Request) { work.Collect() })
	mux.HandleFunc("GET /debug/heap", func(w http.ResponseWriter, _ *http.Request) { pprof.WriteHeapProfile(w) })
	mux.HandleFunc("GET /debug/cpu", func(w http.ResponseWriter, r *http.Request) {
		seconds, err := strconv.ParseFloat(r.URL.Query().Get("seconds"), 64)
		if err == nil {
			err = pprof.StartCPUProfile(w)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		time.Sleep(time.Duration(seconds * float64(time.Second)))
		pprof.StopCPUProfile()
	})
	return mux
}

// after says hello when do is done.
func after(do func()) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		do()
		text(w, work.Hello)
	}
}

func text(w http.ResponseWriter, s string) {
	w.Header().Set("Content-Type", "text/plain")
	io.WriteString(w, s)
}

func form(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text(w, work.Form(r.Form.Get("id"), r.PostForm.Get("name"), r.PostForm.Get("city")))
}

// encoded answers with what encode makes, as JSON.
func encoded(encode func() ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		b, err := encode()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(b)
	}
}

func upload(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text(w, strconv.FormatInt(n, 10))
}
