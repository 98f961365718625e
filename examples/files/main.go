// Command files serves a folder with chert and http.FileServer.
package main

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"net/http"
	"os"

	"github.com/chert-http/chert"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "where to listen")
	dir := flag.String("dir", ".", "what to serve")
	flag.Parse()
	// A root does not follow links that lead out of the folder.
	root, err := os.OpenRoot(*dir)
	if err != nil {
		log.Fatal(err)
	}
	srv := &chert.Server{Handler: handler(root.FS())}
	l, err := srv.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/\n", l.Addr())
	if err := chert.Run(context.Background(), srv, 0, func() error { return srv.Serve(l) }); err != nil {
		log.Fatal(err)
	}
}

func handler(files fs.FS) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	// The same files as downloads.
	mux.HandleFunc("GET /save/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", "attachment")
		http.ServeFileFS(w, r, files, r.PathValue("name"))
	})
	return mux
}
