// Command gin serves a gin engine with chert.
package main

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"github.com/chert-http/chert"
	"github.com/gin-gonic/gin"
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
	Name string `json:"name" binding:"required,max=20"`
	Age  int    `json:"age" binding:"gte=0"`
}

func handler(l *log.Logger) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.HandleMethodNotAllowed = true
	r.Use(gin.RecoveryWithWriter(l.Writer()))
	r.GET("/", func(c *gin.Context) { c.String(http.StatusOK, "hello\n") })
	r.GET("/panic", func(*gin.Context) { panic("on purpose") })
	users := r.Group("/users")
	users.GET("/:id", func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"id": c.Param("id")}) })
	users.POST("", create)
	r.Group("/admin", gin.BasicAuth(gin.Accounts{"admin": "secret"})).
		GET("", func(c *gin.Context) { c.String(http.StatusOK, "welcome %s\n", c.GetString(gin.AuthUserKey)) })
	r.POST("/upload", upload)
	r.GET("/ticks", func(c *gin.Context) { ticks(c, l) })
	r.StaticFile("/source", "main.go")
	return r
}

func create(c *gin.Context) {
	var u user
	if err := c.ShouldBindJSON(&u); err != nil {
		c.JSON(http.StatusBadRequest, gin.H{"error": err.Error()})
		return
	}
	c.JSON(http.StatusCreated, u)
}

func upload(c *gin.Context) {
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, 8<<20)
	head, err := c.FormFile("file")
	if err != nil {
		c.String(http.StatusBadRequest, "%v\n", err)
		return
	}
	f, err := head.Open()
	if err != nil {
		c.String(http.StatusInternalServerError, "%v\n", err)
		return
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		c.String(http.StatusInternalServerError, "%v\n", err)
		return
	}
	c.String(http.StatusOK, "%s %d %x\n", head.Filename, n, h.Sum(nil))
}

// ticks streams until the server stops or the client leaves, of which http.CloseNotifier
// notifies gin. A stream that went on would be cut off, at the end of Run's grace.
func ticks(c *gin.Context, l *log.Logger) {
	n := 0
	left := c.Stream(func(w io.Writer) bool {
		n++
		c.SSEvent("tick", n)
		select {
		case <-time.After(10 * time.Millisecond):
		case <-c.Request.Context().Done():
		case <-chert.Stopping(c.Request.Context()): // nil on other servers
			return false
		}
		return n < 1000
	})
	l.Printf("ticks: client left: %v", left)
}
