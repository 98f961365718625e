package main

import (
	"bufio"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// kinds of records.
const (
	kindEvent = iota
	kindGap
	kindStart // the ID that a client begins with
)

// A record is what a client has got.
type record struct {
	MS      uint64 // of the ID
	At      int64  // when, in nanoseconds since 1970
	Latency uint32 // in microseconds
	Seq     uint32 // of the ID
	Kind    uint32
	Client  uint32
}

// client is one that reads a topic, and connects again, to any instance.
type client struct {
	number, topic int
	last          string
	records       []record

	mu   sync.Mutex
	conn net.Conn
	over bool
}

// clients is the process of clients. It ends when its input does.
func clients(args []string) error {
	f := flag.NewFlagSet("clients", flag.ContinueOnError)
	first, n, topics := f.Int("first", 0, ""), f.Int("n", 1, ""), f.Int("topics", 1, "")
	list, file := f.String("addrs", "", ""), f.String("file", "", "")
	if err := f.Parse(args); err != nil {
		return err
	}
	addrs := strings.Split(*list, ",")
	all := make([]*client, *n)
	var connected, running sync.WaitGroup
	slots := make(chan bool, 64) // how many connect at a time, at first
	for i := range all {
		c := &client{number: *first + i, topic: (*first + i) / len(addrs) % *topics}
		all[i] = c
		connected.Add(1)
		running.Go(func() {
			slots <- true
			c.run(addrs, func() {
				<-slots
				connected.Done()
			})
		})
	}
	connected.Wait()
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	for _, c := range all {
		c.end()
	}
	running.Wait()
	out, err := os.Create(*file)
	if err != nil {
		return err
	}
	defer out.Close()
	w := bufio.NewWriterSize(out, 1<<20)
	for _, c := range all {
		if err := binary.Write(w, binary.LittleEndian, c.records); err != nil {
			return err
		}
	}
	return w.Flush()
}

// end ends the client for good, cut its connection.
func (c *client) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.conn != nil {
		c.conn.Close()
	}
}

// run reads until end is called. connected is called once.
func (c *client) run(addrs []string, connected func()) {
	for addr := addrs[c.number%len(addrs)]; ; addr = addrs[rand.N(len(addrs))] {
		conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
		if err == nil {
			c.mu.Lock()
			c.conn = conn
			over := c.over
			c.mu.Unlock()
			if over {
				conn.Close()
				return
			}
			c.read(conn, func() {
				if connected != nil {
					connected()
					connected = nil
				}
			})
			conn.Close()
		}
		c.mu.Lock()
		over := c.over
		c.mu.Unlock()
		if over {
			return
		}
		time.Sleep(100*time.Millisecond + rand.N(1500*time.Millisecond))
	}
}

// age is how long a client stays connected, about.
const age = 2 * time.Minute

// read reads one response. opened is called when the first ID has come.
func (c *client) read(conn net.Conn, opened func()) {
	cut := time.AfterFunc(rand.N(2*age), func() { conn.Close() }) // as networks do
	defer cut.Stop()
	head := fmt.Sprintf("GET /%d HTTP/1.1\r\nHost: h\r\n", c.topic)
	if c.last != "" {
		head += "Last-Event-ID: " + c.last + "\r\n"
	}
	if _, err := io.WriteString(conn, head+"\r\n"); err != nil {
		return
	}
	res, err := http.ReadResponse(bufio.NewReaderSize(conn, 512), nil)
	if err != nil || res.StatusCode != 200 {
		return
	}
	defer res.Body.Close()
	lines := bufio.NewReaderSize(res.Body, 256)
	var id, kind, data string
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		switch field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); field {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			data = value
		case "":
			c.got(id, kind, data)
			if id != "" {
				opened()
			}
			id, kind, data = "", "", ""
		}
	}
}

// got records an event.
func (c *client) got(id, kind, data string) {
	now := time.Now().UnixNano()
	r := record{At: now, Kind: kindEvent, Client: uint32(c.number)}
	switch {
	case kind == "gap":
		r.Kind = kindGap
	case id == "":
		return // a heartbeat
	case data == "":
		r.Kind = kindStart
	default:
		if sent, err := strconv.ParseInt(data, 10, 64); err == nil {
			r.Latency = uint32(min(max(now-sent, 0)/1000, 1<<32-1))
		}
	}
	if id != "" {
		c.last = id
		r.MS, r.Seq = parseID(id)
	}
	c.records = append(c.records, r)
}

// parseID parses an ID of Redis; one of a topic in memory is 0.
func parseID(id string) (ms uint64, seq uint32) {
	a, b, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseUint(a, 10, 64)
	n, _ := strconv.ParseUint(b, 10, 32)
	return ms, uint32(n)
}
