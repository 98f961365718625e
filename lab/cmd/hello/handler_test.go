package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chert-http/chert/lab/measure"
)

func TestHandler(t *testing.T) {
	h := handler()
	ask := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	if w := ask("/"); w.Code != 200 || w.Body.String() != "Hello, World!" || w.Header().Get("Content-Type") != "text/plain" {
		t.Errorf("/: %d %q %v", w.Code, w.Body, w.Header())
	}
	if w := ask("/other"); w.Code != 404 {
		t.Errorf("/other: %d", w.Code)
	}
	if w := ask("/debug/gc"); w.Code != 200 {
		t.Errorf("/debug/gc: %d", w.Code)
	}
	var p measure.Process
	w := ask("/debug/stats")
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Goroutines < 1 || p.HeapInUse < 1 || p.Resident < 1<<20 {
		t.Errorf("/debug/stats: %s, %v", w.Body, err)
	}
}
