package demo

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/middleware"
)

// echo responds with the request's body. Its type is text or JSON, whatever the client sent: a page of another site
// can make a browser post, and the response must not become a page of this one.
func echo(x *direct.Exchange) {
	kind := "text/plain; charset=utf-8"
	if string(x.RequestHeader("Content-Type")) == "application/json" {
		kind = "application/json"
	}
	x.SetHeader("Content-Type", kind)
	x.Write(x.Body())
}

// maxUser is the last id that there is.
const maxUser = 1000

// user responds with a user's data.
func user(x *direct.Exchange) {
	id, err := strconv.ParseUint(string(x.PathValue("id")), 10, 16)
	if err != nil || id < 1 || id > maxUser {
		x.SetStatus(http.StatusNotFound)
		x.SetHeader("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(x, "there are users 1 to %d\n", maxUser)
		return
	}
	x.SetHeader("Content-Type", "application/json")
	x.SetHeader("Cache-Control", "private, no-store")
	b, _ := json.Marshal(map[string]any{"id": id, "name": fmt.Sprintf("User %d", id), "asked_by": middleware.UserOf(x)})
	x.Write(append(b, '\n'))
}

// receive counts a body as it arrives, at the client's speed; nothing is stored.
func receive(w http.ResponseWriter, r *http.Request) {
	sum := sha256.New()
	n, err := io.Copy(sum, r.Body)
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		http.Error(w, fmt.Sprintf("more than %d bytes", tooLarge.Limit), http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		http.Error(w, "the body ended early", http.StatusBadRequest)
		return
	}
	writeJSON(w, map[string]any{"bytes": n, "sha256": fmt.Sprintf("%x", sum.Sum(nil))})
}

// query is a handler that blocks, like one that queries a database.
func query(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	if err := wait(r.Context(), queryTime); err != nil {
		return // the client has left, or Timeout has responded
	}
	type row struct {
		ID   int    `json:"id"`
		Name string `json:"name"`
	}
	rows := make([]row, 50)
	for i := range rows {
		rows[i] = row{i + 1, fmt.Sprintf("User %d", i+1)}
	}
	writeJSON(w, map[string]any{"waited_ms": time.Since(begin).Milliseconds(), "rows": rows})
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}
