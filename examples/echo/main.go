// Command echo serves an echo instance with chert.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"github.com/chert-http/chert"
	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	srv := &chert.Server{Handler: handler(log.Default())}
	l, err := srv.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/\n", l.Addr())
	if err := chert.Run(context.Background(), srv, 0, func() error { return srv.Serve(l) }); err != nil {
		log.Fatal(err)
	}
}

type user struct {
	ID   int    `param:"id" json:"id"`
	Name string `json:"name"`
	Full bool   `query:"full" json:"full"`
}

func handler(l *log.Logger) http.Handler {
	e := echo.New()
	e.Logger.SetOutput(l.Writer())
	e.Use(middleware.Recover(), middleware.BodyLimit("8M"))
	e.GET("/", func(c echo.Context) error { return c.String(http.StatusOK, "hello\n") })
	e.GET("/panic", func(echo.Context) error { panic("on purpose") })
	users := e.Group("/users")
	users.GET("/:id", bind)
	users.PUT("/:id", bind)
	admin := e.Group("/admin", middleware.BasicAuth(func(name, password string, _ echo.Context) (bool, error) {
		return name == "admin" && password == "secret", nil
	}))
	admin.GET("", func(c echo.Context) error { return c.String(http.StatusOK, "welcome\n") })
	e.GET("/ticks", func(c echo.Context) error { return ticks(c, l) }, middleware.Gzip())
	e.POST("/upload", upload)
	e.File("/source", "main.go")
	return e
}

// bind responds with the values of the request: a path parameter, and a query
// parameter or JSON if present.
func bind(c echo.Context) error {
	var u user
	if err := c.Bind(&u); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, u)
}

func upload(c echo.Context) error {
	head, err := c.FormFile("file")
	if err != nil {
		return err
	}
	f, err := head.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return err
	}
	return c.String(http.StatusOK, fmt.Sprintf("%s %d %x\n", head.Filename, n, h.Sum(nil)))
}

// ticks streams lines of JSON, one at a time, until the client leaves or the server stops.
// A stream that went on would be cut off, at the end of Run's grace.
func ticks(c echo.Context, l *log.Logger) error {
	res := c.Response()
	res.Header().Set(echo.HeaderContentType, "application/x-ndjson")
	enc := json.NewEncoder(res)
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	for n := 1; n < 1000; n++ {
		if err := enc.Encode(map[string]int{"tick": n}); err != nil {
			return err
		}
		res.Flush()
		select {
		case <-every.C:
		case <-c.Request().Context().Done():
			l.Printf("ticks: %v", c.Request().Context().Err())
			return nil
		case <-chert.Stopping(c.Request().Context()): // nil on other servers
			return nil
		}
	}
	return nil
}
