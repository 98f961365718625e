package h2_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
)

// body answers with as many bytes as the path says.
var body = hf(func(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(strings.TrimLeft(r.URL.Path, "/"))
	io.WriteString(w, strings.Repeat("x", n))
})

// update writes a PRIORITY_UPDATE.
func (c *raw) update(id uint32, value string) {
	c.fr.WriteRawFrame(0x10, 0, 0, append(binary.BigEndian.AppendUint32(nil, id), value...))
}

// Responses come in the order of RFC 9218 section 10, whatever the order of the
// requests; without any sign that the client knows of priorities they take turns.
func TestOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		settings []http2.Setting
		early    map[uint32]string // PRIORITY_UPDATE before the request
		fields   []string          // priorities of the streams 3, 5, ...
		late     map[uint32]string // and after it
		want     string
	}{
		{"turns", nil, nil, []string{"", "", ""}, nil, "3 5 7 3 5 7 3 5 7"},
		{"a client that knows", []http2.Setting{{ID: 9, Val: 1}}, nil, []string{"", "", ""}, nil, "3 3 3 5 5 5 7 7 7"},
		{"urgency", nil, nil, []string{"u=5", "", "u=1"}, nil, "7 7 7 5 5 5 3 3 3"},
		{"incremental ones share", nil, nil, []string{"i", "i, u=3", ""}, nil, "7 7 7 3 5 3 5 3 5"},
		{"updates", nil, map[uint32]string{7: "u=0", 99: "u=0"}, []string{"u=1", "u=2", "u=7"}, map[uint32]string{5: "u=0,i"}, "7 7 7 5 5 5 3 3 3"},
		{"what is not valid", nil, nil, []string{"u=9, x=y;z, i=?2", "u=a,u", "u=2;v=1 , =, i=?0"}, nil, "7 7 7 3 3 3 5 5 5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			each(t, "oracle", func(t *testing.T, kind string) {
				s := serve(t, kind, &chert.Server{Handler: body})
				c := s.raw(tt.settings...)
				if a := c.get(1, "/65535"); len(a.body) != 65535 { // all of the connection's window
					t.Fatalf("%+v", a)
				}
				for id, v := range tt.early {
					c.update(id, v)
				}
				for i, v := range tt.fields {
					fields := path(get, "/3000")
					if v != "" {
						fields = with(fields, "priority: "+v)
					}
					c.headers(uint32(2*i+3), true, fields...)
				}
				c.send()
				for heads := 0; heads < len(tt.fields); {
					if _, ok := c.next().(*http2.HeadersFrame); ok {
						heads++
					}
				}
				for id, v := range tt.late {
					c.update(id, v)
				}
				var got []string
				for range 3 * len(tt.fields) {
					c.fr.WriteWindowUpdate(0, 1000)
					c.send()
					for {
						f := c.next()
						if f == nil {
							t.Fatal("closed")
						}
						if f, ok := f.(*http2.DataFrame); ok && f.Length > 0 {
							got = append(got, fmt.Sprint(f.StreamID))
							break
						}
					}
				}
				if tt.name == "turns" || strings.Contains(tt.name, "share") {
					// Who of several that have sent nothing is first is not known.
					for i := 0; i+6 <= len(got); i++ {
						if s := got[i]; turnsOf(tt.want, s) && got[i+1] == s {
							t.Errorf("got %s", got)
						}
					}
					if tt.name == "turns" {
						return
					}
					got = append(got[:3], strings.Fields(tt.want)[3:]...)
				}
				if g := strings.Join(got, " "); g != tt.want {
					t.Errorf("got %s, want %s", g, tt.want)
				}
			})
		})
	}
}

// turnsOf reports whether a stream takes turns with others in order.
func turnsOf(order, id string) bool { return !strings.Contains(order, id+" "+id) }

// Whatever the priorities, and however windows open, all responses come.
func TestOrderEnds(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			for range 20 {
				body(w, r)
			}
		})})
		c := s.raw()
		rnd := rand.New(rand.NewSource(1))
		left := make(map[uint32]int)
		for i := range 30 {
			id := uint32(2*i + 1)
			n := rnd.Intn(10_000)
			left[id] = 20 * n
			c.headers(id, true, with(path(get, fmt.Sprint("/", n)), fmt.Sprintf("priority: u=%d%s", rnd.Intn(8), []string{"", ", i"}[rnd.Intn(2)]))...)
		}
		c.send()
		ended := 0
		for ended < len(left) {
			f := c.next()
			if f == nil {
				t.Fatal("closed")
			}
			d, ok := f.(*http2.DataFrame)
			if !ok {
				continue
			}
			left[d.StreamID] -= int(d.Length)
			if d.StreamEnded() {
				ended++
				if left[d.StreamID] != 0 {
					t.Errorf("%d bytes of stream %d are missing", left[d.StreamID], d.StreamID)
				}
			}
			if d.Length > 0 {
				c.fr.WriteWindowUpdate(0, d.Length)
				c.fr.WriteWindowUpdate(d.StreamID, d.Length)
				if rnd.Intn(5) == 0 {
					c.update(uint32(2*rnd.Intn(30)+1), fmt.Sprintf("u=%d", rnd.Intn(8)))
				}
				c.send()
			}
		}
	})
}

// PRIORITY_UPDATE that RFC 9218 section 7.1 prohibits.
func TestPriorityUpdateErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ wire, want string }{
		{"000003 10 00 00000000 000001", "FRAME_SIZE_ERROR"},
		{"000004 10 00 00000001 00000001", "PROTOCOL_ERROR"},
		{"000004 10 00 00000000 00000000", "PROTOCOL_ERROR"},
		{"000004 10 00 00000000 00000002", "PROTOCOL_ERROR"},
		{"000006 04 00 00000000 000900000002", "PROTOCOL_ERROR"},
	} {
		s := serve(t, "goroutines", &chert.Server{Handler: hf(hello)})
		c := s.raw()
		c.out.Write(unhex(tt.wire))
		c.send()
		if a := c.read(1); a.goaway != tt.want {
			t.Errorf("%s: %+v", tt.wire, a)
		}
	}
}
