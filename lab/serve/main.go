package serve

import (
	"flag"
	"fmt"
	"os"
)

// Main serves on the address of the flag --listen. It does not return; serve only does with an error.
func Main(serve func(addr string) error) {
	listen := flag.String("listen", "127.0.0.1:8080", "address to listen on")
	flag.Parse()
	fmt.Fprintln(os.Stderr, serve(*listen))
	os.Exit(1)
}
