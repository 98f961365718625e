package main

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/examples/internal/engines"
	"github.com/chert-http/chert/middleware"
	"github.com/gin-gonic/gin"
)

// What gin's handlers and middleware see of a response is right on both sides
// of a middleware.
func TestGinned(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	var out output
	access := middleware.NewAccessLog(&middleware.AccessLogOptions{Format: middleware.LogCommon, Output: &out})
	type seen struct {
		status, size int
		written      bool
	}
	outside, inside := make(chan seen, 1), make(chan seen, 1)
	look := func(to chan seen) gin.HandlerFunc {
		return func(c *gin.Context) {
			w, r := c.Writer, c.Request
			c.Next()
			if c.Writer != w || c.Request != r {
				t.Error("the rest of the chain has left another writer or request")
			}
			to <- seen{w.Status(), w.Size(), w.Written()}
		}
	}
	r := gin.New()
	r.Use(gin.RecoveryWithWriter(io.Discard), look(outside), ginned(access.Wrap), ginned(middleware.Timeout(&middleware.TimeoutOptions{Limit: time.Hour})), ginned(middleware.Must(middleware.Compress(nil))), look(inside))
	r.GET("/json", func(c *gin.Context) { c.JSON(http.StatusCreated, gin.H{"a": 1}) })
	r.GET("/empty", func(c *gin.Context) { c.Status(http.StatusNoContent) })
	r.GET("/nothing", func(*gin.Context) {})
	r.GET("/refused", func(c *gin.Context) { c.AbortWithStatus(http.StatusForbidden) }, func(*gin.Context) { t.Error("not aborted") })
	s := engines.NetHTTP.Start(t, r)
	for _, tt := range []struct {
		path      string
		status    int
		body, typ string
		size      int // inside
	}{
		{"/json", 201, `{"a":1}`, "application/json; charset=utf-8", 7},
		{"/empty", 204, "", "", unwritten},
		{"/nothing", 200, "", "", unwritten},
		{"/refused", 403, "", "", 0},
		{"/nowhere", 404, "404 page not found", "text/plain", 0}, // gin writes it after the chain has returned
	} {
		res := s.Expect(t, "GET", tt.path, "", tt.status, tt.body)
		if got := res.Header.Get("Content-Type"); got != tt.typ {
			t.Errorf("%s: got the type %q", tt.path, got)
		}
		in, o := engines.Await(t, inside, "what is inside"), engines.Await(t, outside, "what is outside")
		if o.status != tt.status || tt.path != "/nowhere" && (in.status != tt.status || in.size != tt.size) {
			t.Errorf("%s: inside %+v, outside %+v", tt.path, in, o)
		}
	}
	s.Close()
	access.Close()
	for _, want := range []string{`/json HTTP/1.1" 201 7`, `/empty HTTP/1.1" 204 `, `/nothing HTTP/1.1" 200 `, `/refused HTTP/1.1" 403 `, `/nowhere HTTP/1.1" 404 `} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

// A chain that has panicked, or that a middleware has stopped, does not
// continue.
func TestGinnedAborts(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	var log bytes.Buffer
	never := func(c *gin.Context) { t.Errorf("%s goes on", c.Request.URL.Path) }
	quiet := middleware.Recover(&middleware.RecoverOptions{Handle: func(any, []byte) {}})
	r := gin.New()
	r.Use(gin.RecoveryWithWriter(&log))
	r.GET("/caught", ginned(quiet), func(*gin.Context) { panic("on purpose") }, never)
	r.GET("/refused", ginned(bearer), never)
	r.GET("/through", ginned(middleware.Timeout(&middleware.TimeoutOptions{Limit: time.Hour})), func(*gin.Context) { panic("on purpose") }, never)
	s := engines.NetHTTP.Start(t, r)
	s.Expect(t, "GET", "/caught", "", 500, "Internal Server Error\n")
	s.Expect(t, "GET", "/refused", "", 401, "Unauthorized\n")
	if log.Len() > 0 {
		t.Errorf("a panic has got through: %s", &log)
	}
	s.Expect(t, "GET", "/through", "", 500, "")
}
