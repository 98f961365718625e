// Command fasthttp is fasthttp as a server under test, with fasthttp/router; package serve says what it serves.
package main

import (
	"strconv"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"github.com/chert-http/chert/lab/serve"
	"github.com/chert-http/chert/lab/work"
)

func main() {
	serve.Main(func(addr string) error {
		s := &fasthttp.Server{Handler: routes(), MaxRequestBodySize: work.MaxBody}
		return s.ListenAndServe(addr)
	})
}

func routes() fasthttp.RequestHandler {
	var turning work.Turning
	r := router.New()
	r.GET("/", after(func() {}))
	r.GET("/sleep", after(work.Sleep))
	r.GET("/compute", after(work.Compute))
	r.GET("/turning", after(turning.Do))
	r.GET("/turn", func(c *fasthttp.RequestCtx) {
		if err := turning.To(string(c.QueryArgs().Peek("to"))); err != nil {
			c.Error(err.Error(), fasthttp.StatusBadRequest)
		}
	})
	r.GET("/users/{user}/posts/{post}", func(c *fasthttp.RequestCtx) {
		text(c, work.Post(c.UserValue("user").(string), c.UserValue("post").(string)))
	})
	r.POST("/form", func(c *fasthttp.RequestCtx) {
		body := c.PostArgs()
		text(c, work.Form(string(c.QueryArgs().Peek("id")), string(body.Peek("name")), string(body.Peek("city"))))
	})
	r.GET("/items", func(c *fasthttp.RequestCtx) { encoded(c, work.ItemsJSON) })
	r.POST("/upload", func(c *fasthttp.RequestCtx) { text(c, strconv.Itoa(len(c.PostBody()))) })
	r.GET("/debug/stats", func(c *fasthttp.RequestCtx) { encoded(c, work.ProcessJSON) })
	r.GET("/debug/gc", func(*fasthttp.RequestCtx) { work.Collect() })
	return r.Handler
}

// after says hello when do is done.
func after(do func()) fasthttp.RequestHandler {
	return func(c *fasthttp.RequestCtx) {
		do()
		text(c, work.Hello)
	}
}

func text(c *fasthttp.RequestCtx, s string) {
	c.SetContentType("text/plain")
	c.SetBodyString(s)
}

// encoded answers with what encode makes, as JSON.
func encoded(c *fasthttp.RequestCtx, encode func() ([]byte, error)) {
	b, err := encode()
	if err != nil {
		c.Error(err.Error(), fasthttp.StatusInternalServerError)
		return
	}
	c.SetContentType("application/json")
	c.SetBody(b)
}
