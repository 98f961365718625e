// Command hertz is hertz as a server under test; package serve says what it serves.
package main

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/hlog"

	"github.com/chert-http/chert/lab/serve"
	"github.com/chert-http/chert/lab/work"
)

func main() {
	hlog.SetOutput(io.Discard)
	serve.Main(func(addr string) error {
		// By default hertz closes idle connections after three minutes, which a run may take.
		h := server.New(server.WithHostPorts(addr), server.WithMaxRequestBodySize(work.MaxBody),
			server.WithIdleTimeout(time.Hour), server.WithDisablePrintRoute(true))
		routes(h)
		return h.Run()
	})
}

func routes(h *server.Hertz) {
	var turning work.Turning
	h.GET("/", after(func() {}))
	h.GET("/sleep", after(work.Sleep))
	h.GET("/compute", after(work.Compute))
	h.GET("/turning", after(turning.Do))
	h.GET("/turn", func(_ context.Context, c *app.RequestContext) {
		if err := turning.To(c.Query("to")); err != nil {
			c.String(http.StatusBadRequest, err.Error())
		}
	})
	h.GET("/users/:user/posts/:post", func(_ context.Context, c *app.RequestContext) {
		text(c, work.Post(c.Param("user"), c.Param("post")))
	})
	h.POST("/form", func(_ context.Context, c *app.RequestContext) {
		text(c, work.Form(c.Query("id"), c.PostForm("name"), c.PostForm("city")))
	})
	h.GET("/items", func(_ context.Context, c *app.RequestContext) { encoded(c, work.ItemsJSON) })
	h.POST("/upload", func(_ context.Context, c *app.RequestContext) { text(c, strconv.Itoa(len(c.Request.Body()))) })
	h.GET("/debug/stats", func(_ context.Context, c *app.RequestContext) { encoded(c, work.ProcessJSON) })
	h.GET("/debug/gc", func(context.Context, *app.RequestContext) { work.Collect() })
}

// after says hello when do is done.
func after(do func()) app.HandlerFunc {
	return func(_ context.Context, c *app.RequestContext) {
		do()
		text(c, work.Hello)
	}
}

func text(c *app.RequestContext, s string) { c.Data(http.StatusOK, "text/plain", []byte(s)) }

// encoded answers with what encode makes, as JSON.
func encoded(c *app.RequestContext, encode func() ([]byte, error)) {
	b, err := encode()
	if err != nil {
		c.String(http.StatusInternalServerError, err.Error())
		return
	}
	c.Data(http.StatusOK, "application/json", b)
}
