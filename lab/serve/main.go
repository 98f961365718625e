package serve

import (
	"flag"
	"fmt"
	"net"
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

func listenFlag() *string {
	flag.StringVar(&secure, "tls", "", "another `address`, with TLS; empty for none")
	return flag.String("listen", "127.0.0.1:8080", "address to listen on")
}

// secure is the address for TLS.
var secure string

// AlsoTLS serves at the address of the flag --tls, too, if there is one. The server's configuration must have a
// Certificate.
func AlsoTLS(listen func(network, addr string) (net.Listener, error), serveTLS func(l net.Listener, certFile, keyFile string) error) error {
	if secure == "" {
		return nil
	}
	l, err := listen("tcp", secure)
	if err != nil {
		return err
	}
	go func() {
		fmt.Fprintln(os.Stderr, serveTLS(l, "", ""))
		os.Exit(1)
	}()
	return nil
}
