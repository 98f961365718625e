package serve

import (
	"flag"
	"fmt"
	"os"
)

// Main serves on the address of the flag --listen. It does not return; serve only does with an error.
func Main(serve func(addr string) error) {
	listen := listenFlag()
	flag.Parse()
	fmt.Fprintln(os.Stderr, serve(*listen))
	os.Exit(1)
}

// Files is Main for the folder of the flag --files.
func Files(serve func(addr, dir string) error) {
	listen := listenFlag()
	dir := flag.String("files", ".", "folder to serve")
	flag.Parse()
	fmt.Fprintln(os.Stderr, serve(*listen, *dir))
	os.Exit(1)
}

func listenFlag() *string { return flag.String("listen", "127.0.0.1:8080", "address to listen on") }
