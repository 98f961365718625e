package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"
)

// results is what clients have got.
type results struct {
	p       *plan
	clients [][]record // by number
}

func readResults(p *plan, files []string) (*results, error) {
	all := &results{p: p, clients: make([][]record, p.clients)}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		for b := bufio.NewReaderSize(f, 1<<20); ; {
			var r record
			if err := binary.Read(b, binary.LittleEndian, &r); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				f.Close()
				return nil, err
			}
			all.clients[r.Client] = append(all.clients[r.Client], r)
		}
		f.Close()
	}
	return all, nil
}

// row prints a row of the table, of what was delivered in a time.
func (all *results) row(w io.Writer, name string, c *cost) {
	var latency []uint32
	events := make(map[[3]uint64]bool)
	for n, records := range all.clients {
		topic := uint64(n / len(all.p.addrs) % all.p.topics)
		for _, r := range records {
			if r.Kind == kindEvent && r.At >= c.from.UnixNano() && r.At < c.to.UnixNano() {
				latency = append(latency, r.Latency)
				events[[3]uint64{topic, r.MS, uint64(r.Seq)}] = true
			}
		}
	}
	if len(latency) == 0 {
		fmt.Fprintf(w, "| %s | nothing was delivered |\n", name)
		return
	}
	slices.Sort(latency)
	at := func(q float64) time.Duration {
		return (time.Duration(latency[int(q*float64(len(latency)-1))]) * time.Microsecond).Round(10 * time.Microsecond)
	}
	publish, per, other, reads := "", "", "", ""
	if c.used > 0 {
		publish = c.publish.Round(time.Microsecond).String()
		used := c.used - time.Duration(c.requests)*c.publish
		per = (used / time.Duration(len(latency))).Round(100 * time.Nanosecond).String()
	}
	if c.storeUsed > 0 {
		other = strconv.FormatFloat(100*c.storeUsed.Seconds()/c.to.Sub(c.from).Seconds(), 'f', 1, 64) + " %"
		reads = strconv.FormatFloat(float64(c.commands)/float64(len(events))/float64(len(all.p.addrs)), 'f', 2, 64)
	}
	rate := strconv.Itoa(all.p.rate)
	fmt.Fprintf(w, "| %s | %s | %d | %s | %s | %s | %v | %v | %s |\n", name, rate, len(latency), publish, per, other, at(0.5), at(0.99), reads)
}

type id struct {
	ms  uint64
	seq uint32
}

func (a id) compare(b id) int {
	if a.ms != b.ms {
		if a.ms < b.ms {
			return -1
		}
		return 1
	}
	return int(int64(a.seq) - int64(b.seq))
}

// verify compares what the clients have got with what the store has in the end.
func (all *results) verify(w io.Writer, s store) error {
	kept, err := s.kept()
	if err != nil {
		return err
	}
	var v verdict
	for n, records := range all.clients {
		v.client(records, kept[n/len(all.p.addrs)%all.p.topics], n, w)
	}
	fmt.Fprintf(w, "events of clients: %d; gaps that they were told of: %d, to %d clients; events lost by %s after they were delivered: %d\n",
		v.events, v.gaps, v.gapped, s.name(), v.lost)
	fmt.Fprintf(w, "twice: %d, out of order: %d, missing without a gap: %d\n", v.twice, v.disorder, v.missing)
	if v.twice+v.disorder+v.missing > 0 {
		return errors.New("clients have not got what they should")
	}
	return nil
}

// verdict counts what is right and wrong.
type verdict struct{ events, gaps, gapped, lost, twice, disorder, missing int }

// client adds what a client has got of a topic of which the store has kept some events.
func (v *verdict) client(records []record, kept []id, n int, w io.Writer) {
	complain := func(what string, r record) {
		if v.twice+v.disorder+v.missing <= 10 {
			fmt.Fprintf(w, "client %d: %s at %d-%d (%s)\n", n, what, r.MS, r.Seq, time.Unix(0, r.At).Format(time.StampMilli))
		}
	}
	seen := make(map[id]bool)
	var last id
	began, gap := false, false
	gaps := 0
	for _, r := range records {
		if r.Kind == kindGap {
			gap = true
			gaps++
			continue
		}
		now := id{r.MS, r.Seq}
		if r.Kind == kindStart {
			if !began {
				began, last = true, now
			}
			continue
		}
		v.events++
		if seen[now] {
			v.twice++
			complain("twice", r)
		}
		seen[now] = true
		if now.compare(last) <= 0 && !gap {
			v.disorder++
			complain("out of order", r)
		}
		i, found := slices.BinarySearchFunc(kept, now, id.compare)
		if !found {
			v.lost++
		}
		if began && !gap {
			from, _ := slices.BinarySearchFunc(kept, id{last.ms, last.seq + 1}, id.compare)
			if missed := i - from; missed > 0 {
				v.missing += missed
				complain(fmt.Sprint(missed, " missing"), r)
			}
		}
		began, gap, last = true, false, now
	}
	if len(kept) > 0 && began && !gap && last.compare(kept[len(kept)-1]) < 0 {
		v.missing++
		complain("the end is missing", record{MS: last.ms, Seq: last.seq})
	}
	if v.gaps += gaps; gaps > 0 {
		v.gapped++
	}
}
