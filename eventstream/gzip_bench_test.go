package eventstream

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/wsdeflate"
)

// words has n words at random.
func words(r *rand.Rand, n int) string {
	const all = "the quick brown server sends events to clients that are silent most of the time order status shipped paid open " +
		"build deploy failed passed user joined left room message hello good morning thanks meeting moved to tomorrow afternoon please review"
	list := strings.Fields(all)
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(list[r.IntN(len(list))])
	}
	return b.String()
}

// usual are events as feeds have them.
var usual = []struct {
	name string
	make func(r *rand.Rand, i int) Event
}{
	{"price", func(r *rand.Rand, i int) Event {
		return Event{ID: fmt.Sprint("2kq8fj3l1xyz-", i), Type: "price", Data: fmt.Sprintf(`{"EUR": %.4f}`, 1+r.Float64()/10)}
	}},
	{"trade", func(r *rand.Rand, i int) Event {
		e := trade(r.IntN(1 << 30))
		e.ID = fmt.Sprint("2kq8fj3l1xyz-", i)
		return e
	}},
	{"message", func(r *rand.Rand, i int) Event {
		return Event{ID: fmt.Sprint("2kq8fj3l1xyz-", i), Data: fmt.Sprintf(`{"from":"%s","room":"general","at":%d,"text":"%s"}`,
			words(r, 1), 1763868000000+r.IntN(1e9), words(r, 5+r.IntN(25)))}
	}},
	{"token", func(r *rand.Rand, i int) Event {
		return Event{Data: fmt.Sprintf(`{"id":"completion-9x8s7d6f5g4h","object":"completion.chunk","created":1763868000,"model":"model-2026",`+
			`"choices":[{"index":0,"delta":{"content":" %s"},"finish_reason":null}]}`, words(r, 1))}
	}},
	{"orders", func(r *rand.Rand, i int) Event {
		var all []string
		for range 12 {
			all = append(all, fmt.Sprintf(`{"order":%d,"customer":"%s","quantity":%d,"price":%.2f,"note":"%s"}`,
				r.IntN(1e6), words(r, 2), r.IntN(20), r.Float64()*100, words(r, 4)))
		}
		return Event{ID: fmt.Sprint("2kq8fj3l1xyz-", i), Data: "[" + strings.Join(all, ",") + "]"}
	}},
}

// BenchmarkPiece compresses events one by one. The metrics are what is sent by what it
// would be without compression, and the size of an event.
func BenchmarkPiece(b *testing.B) {
	for _, kind := range usual {
		r := rand.New(rand.NewPCG(1, 2))
		var all [][]byte
		for i := range 500 {
			e := kind.make(r, i)
			all = append(all, e.append(nil))
		}
		for _, with := range []string{"alone", "window"} {
			b.Run(kind.name+"/"+with, func(b *testing.B) {
				sent, plain := 0, 0
				var w wsdeflate.Window
				for i := 0; b.Loop(); i++ {
					p := all[i%len(all)]
					sent += len(newPiece(p, useful(&w, p)).bytes(false))
					if plain += len(p); with == "window" {
						w.Add(p, windowBits)
					}
				}
				b.ReportMetric(float64(sent)/float64(plain), "sent/plain")
				b.ReportMetric(float64(plain)/float64(b.N), "B/event")
			})
		}
	}
}

// BenchmarkAdd is what the checksum costs for each receiver of an event.
func BenchmarkAdd(b *testing.B) {
	var z zipped
	p := newPiece([]byte(strings.Repeat("x", 200)), nil)
	for b.Loop() {
		z.add(p, nil)
	}
}
