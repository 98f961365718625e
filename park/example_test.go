package park_test

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/park"
)

// A protocol of words of four letters. While a client is silent, its connection has no
// goroutine.
func ExamplePark() {
	var readable func(net.Conn)
	readable = func(conn net.Conn) {
		conn.SetReadDeadline(time.Now().Add(10 * time.Second)) // for the rest of a word
		word := make([]byte, 4)
		if _, err := io.ReadFull(conn, word); err != nil {
			conn.Close()
			return
		}
		conn.SetWriteDeadline(time.Now().Add(10 * time.Second)) // for a client that does not read
		fmt.Fprintf(conn, "%s, indeed\n", word)
		conn.SetReadDeadline(time.Now().Add(time.Hour)) // for the next word
		if err := park.Park(conn, readable); err != nil {
			conn.Close()
		}
	}
	srv := &chert.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: words\r\n\r\n")
		if rw.Reader.Buffered() > 0 { // a client of this protocol waits for the response
			conn.Close()
			return
		}
		if err := park.Park(conn, readable); err != nil {
			conn.Close()
		}
	})}
	l, err := srv.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go srv.Serve(l)
	defer srv.Close()

	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	io.WriteString(client, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: words\r\n\r\n")
	r := bufio.NewReader(client)
	if _, err := http.ReadResponse(r, nil); err != nil {
		log.Fatal(err)
	}
	for _, word := range []string{"fine", "good"} {
		io.WriteString(client, word)
		answer, _ := r.ReadString('\n')
		fmt.Print(answer)
	}
	// Output:
	// fine, indeed
	// good, indeed
}
