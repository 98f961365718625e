package report

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMedian(t *testing.T) {
	tests := []struct {
		values []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{3}, 3},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
		{[]float64{5, 5, 5, 100}, 5},
	}
	for _, tt := range tests {
		if got := Median(tt.values); got != tt.want {
			t.Errorf("Median(%v) = %v, want %v", tt.values, got, tt.want)
		}
	}
	values := []float64{3, 1, 2}
	if Median(values); values[0] != 3 {
		t.Error("Median sorts its argument")
	}
}

func TestSummary(t *testing.T) {
	values := []float64{8, 10, 9, 30}
	if got, want := Lowest(values), (Summary{8, 9.5}); got != want {
		t.Errorf("Lowest = %v, want %v", got, want)
	}
	if got, want := Highest(values), (Summary{30, 9.5}); got != want {
		t.Errorf("Highest = %v, want %v", got, want)
	}
	if got := Lowest(nil); got != (Summary{}) {
		t.Errorf("Lowest of none = %v", got)
	}
	if got, want := (Summary{4, 6}).To(Summary{8, 0}), (Summary{0.5, 0}); got != want {
		t.Errorf("To = %v, want %v", got, want)
	}
}

func TestPercentile(t *testing.T) {
	values := []float64{10, 0, 30, 20}
	for share, want := range map[float64]float64{0: 0, 0.5: 15, 0.9: 27, 1: 30} {
		if got := Percentile(values, share); got != want {
			t.Errorf("Percentile(%v) = %v, want %v", share, got, want)
		}
	}
	if got := Percentile(nil, 0.9); got != 0 {
		t.Errorf("of none: %v", got)
	}
}

func TestQuartiles(t *testing.T) {
	tests := []struct {
		values    []float64
		low, high float64
	}{
		{nil, 0, 0},
		{[]float64{3}, 3, 3},
		{[]float64{4, 2}, 2.5, 3.5},
		{[]float64{5, 1, 4, 2, 3}, 2, 4},
		{[]float64{1, 2, 3, 100}, 1.75, 27.25},
	}
	for _, tt := range tests {
		if low, high := Quartiles(tt.values); low != tt.low || high != tt.high {
			t.Errorf("Quartiles(%v) = %v, %v, want %v, %v", tt.values, low, high, tt.low, tt.high)
		}
	}
}

// A series with a base is compared with that, and with nothing else.
func TestRatiosWithBase(t *testing.T) {
	rounds := func(cpu float64) []Round { return []Round{{CPU: cpu, PerSecond: 1000 / cpu}} }
	c := Comparison{Series: []Series{
		{Server: "chert", Rounds: rounds(4)}, {Server: "chert+10", Base: "chert", Rounds: rounds(5)},
		{Server: "nginx", Rounds: rounds(8)}, {Server: "nginx+10", Base: "nginx", Rounds: rounds(8)},
	}}
	got := c.Ratios()
	if len(got) != 2 || got[0].Server != "chert+10" || got[0].Rival != "chert" || got[0].CPU.Best != 1.25 || got[1].Rival != "nginx" {
		t.Errorf("Ratios = %+v", got)
	}
}

// Other revisions are compared with the present series of the same server only, before all the rest.
func TestRatiosOfRevisions(t *testing.T) {
	named := func(server, base, present string) Series {
		return Series{Server: server, Base: base, Present: present, Rounds: []Round{{CPU: float64(len(server)), PerSecond: 1}}}
	}
	tests := []struct {
		name   string
		series []Series
		want   string
	}{
		{"first, second and a rival", []Series{named("chert", "", ""), named("chert@a", "", "chert"), named("chert@b", "", "chert"),
			named("direct", "", ""), named("direct@a", "", "direct"), named("nginx", "", "")},
			"chert/chert@a chert/chert@b direct/direct@a chert/direct chert/nginx"},
		{"a rival first", []Series{named("nginx", "", ""), named("chert", "", ""), named("chert@a", "", "chert")},
			"chert/chert@a nginx/chert"},
		{"with a base", []Series{named("chert", "", ""), named("chert+9", "chert", ""), named("chert@a", "", "chert"), named("chert@a+9", "chert@a", "chert+9")},
			"chert/chert@a chert+9/chert@a+9 chert+9/chert chert@a+9/chert@a"},
	}
	for _, tt := range tests {
		var got []string
		for _, r := range (Comparison{Series: tt.series}).Ratios() {
			got = append(got, r.Server+"/"+r.Rival)
			if want := float64(len(r.Server)) / float64(len(r.Rival)); r.CPU.Best != want || r.CPU.Median != want {
				t.Errorf("%s: %s / %s is %v, want %v", tt.name, r.Server, r.Rival, r.CPU, want)
			}
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

var comparison = Comparison{
	Title:       "hello, 64 connections",
	Connections: 64,
	Series: []Series{
		{Server: "chert", ResponseBytes: 117, Resident: 18 << 20, Rounds: []Round{
			{CPU: 8.1, User: 2.2, PerSecond: 120000, Requests: 240000, Steal: 0.5, Others: 3},
			{CPU: 7.4, User: 2, PerSecond: 130000, Requests: 260000},
			{CPU: 9, User: 2.5, PerSecond: 100000, Requests: 200000, Steal: 12.25}}},
		{Server: "nethttp", ResponseBytes: 130, Resident: 20000000, Rounds: []Round{
			{CPU: 18.5, User: 8, PerSecond: 54000, Requests: 108000},
			{CPU: 18, User: 7.9, PerSecond: 55000, Requests: 110000},
			{CPU: 20, User: 8.8, PerSecond: 50000, Requests: 100000, Errors: 3}}},
		{Server: "nginx", ResponseBytes: 161},
	},
}

var beside = Beside{
	Title: "fastslow, sleep",
	Slow:  "sleep",
	Series: []BesideSeries{
		{Server: "chert", Rounds: []BesideRound{
			{AloneP50: 0.1, AloneP99: 0.3, BesideP50: 0.12, BesideP99: 0.4, BesideMax: 2, Fast: 2000, Slow: 1540, Steal: 1.5},
			{AloneP50: 0.1, AloneP99: 0.3, BesideP50: 0.12, BesideP99: 0.6, BesideMax: 4, Fast: 1990, Slow: 1530, Others: 3}}},
		{Server: "nethttp", Rounds: []BesideRound{
			{AloneP50: 0.1, AloneP99: 0.3, BesideP50: 20, BesideP99: 340, BesideMax: 400, Fast: 100, Slow: 50, Errors: 2}}},
	},
}

var readers = Readers{
	Title: "slowreaders",
	Series: []ReadersSeries{
		{Server: "chertfiles", Rounds: []ReadersRound{
			{Alone: 2000, AloneP99: 0.5, Beside: 1800, BesideP99: 0.9, BesideMax: 3, Slow: 62.5, Before: 10 << 20, Most: 12 << 20, Steal: 1.5},
			{Alone: 2000, AloneP99: 0.7, Beside: 1900, BesideP99: 1.1, BesideMax: 5, Slow: 62.3, Before: 10 << 20, Most: 13 << 20, Others: 3}}},
		{Server: "caddy", Rounds: []ReadersRound{
			{Alone: 500, AloneP99: 2, Beside: 0, BesideP99: 40, BesideMax: 41, Slow: 20, Before: 40 << 20, Most: 99 << 20, Errors: 2}}},
	},
}

var stream = Stream{
	Title: "stream, echo",
	Kind:  "echo",
	Base:  "nethttp",
	Series: []StreamSeries{
		{Server: "chert", Rounds: []StreamRound{{CPU: 300, Rate: 2000, Reads: 32.1, Steal: 1.5}, {CPU: 330, Rate: 1900, Reads: 32.3, Others: 3}}},
		{Server: "nethttp", Rounds: []StreamRound{{CPU: 400, Rate: 1500, Reads: 32}, {CPU: 550, Rate: 1400, Reads: 32, Errors: 2}}},
	},
}

var idle = Idle{
	Title:       "idle, 10000 connections",
	Connections: 10000,
	Servers: []Held{
		{"chert", State{9 << 20, 2 << 20, 5}, State{15 << 20, 8 << 20, 4}, State{13 << 20, 6 << 20, 4}},
		{"nethttp", State{8 << 20, 1 << 20, 3}, State{216 << 20, 108 << 20, 10003}, State{208 << 20, 101 << 20, 10003}},
	},
}

var page = Page{Title: "page, 2 rounds", Rounds: []PageRound{
	{Without: PageTurn{CPU: 2, Rate: 200000}, With: PageTurn{CPU: 2.01, Rate: 199000, Steal: 1, Events: 2, Largest: 1.1, Bytes: 2000}},
	{Without: PageTurn{CPU: 2.1, Rate: 190000, Others: 0.5}, With: PageTurn{CPU: 2.12, Rate: 189000, Events: 2, Largest: 1.01, Bytes: 2200}},
}}

var pages = Pages{Title: "h3pages, 2 rounds", Packets: "1000 packets", Series: []PagesSeries{
	{Server: "chert3", HTTP: 3, New: []PageTime{{400, 300}, {500, 310}}, Warm: []PageTime{{300, 200}, {200, 150}}},
	{Server: "nethttp", HTTP: 2, New: []PageTime{{600, 500}, {1000, 600}}, Warm: []PageTime{{300, 290}, {400, 310}}},
}}

func TestText(t *testing.T) {
	for name, write := range map[string]func(*strings.Builder){
		"comparison": func(b *strings.Builder) { comparison.Text(b) },
		"beside":     func(b *strings.Builder) { beside.Text(b) },
		"readers":    func(b *strings.Builder) { readers.Text(b) },
		"stream":     func(b *strings.Builder) { stream.Text(b) },
		"idle":       func(b *strings.Builder) { idle.Text(b) },
		"page":       func(b *strings.Builder) { page.Text(b) },
		"pages":      func(b *strings.Builder) { pages.Text(b) },
	} {
		var b strings.Builder
		write(&b)
		golden(t, name+".txt", b.String())
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	f := File{Profile: "hello", Comparisons: []Comparison{comparison}, Besides: []Beside{beside}, Readers: &readers, Streams: []Stream{stream}, Idle: &idle, Errors: []string{}}
	if err := f.Write(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got File
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	ratio := got.Ratios[0][0]
	if ratio.Rival != "nethttp" || f2(ratio.CPU.Best) != "0.41" || f2(ratio.PerSecond.Median) != "2.22" {
		t.Errorf("first ratio: %+v", ratio)
	}
	if held := got.Held[1]; f0(held.Resident) != "20972" || held.Goroutines != 1 {
		t.Errorf("per connection: %+v", held)
	}
	if len(got.Comparisons[0].Series[0].Rounds) != 3 || len(got.Besides[0].Series[0].Rounds) != 2 ||
		len(got.Readers.Series[0].Rounds) != 2 || len(got.Streams[0].Series[1].Rounds) != 2 {
		t.Error("rounds are missing")
	}
}
