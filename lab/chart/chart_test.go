package chart

import (
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSave(t *testing.T) {
	bars := Bars{Title: "sixteen pipelined requests", Axis: "CPU", Bars: []Bar{
		{"chert", Value{5.5, 5.3, 5.8}}, {"nethttp", Value{10, 10, 10}}, {"none", Value{}}}}
	lines := Lines{Title: "over connections", XAxis: "connections", YAxis: "CPU", Lines: []Line{
		{"chert", []int{1, 64}, []Value{{20, 19, 25}, {5, 4, 6}}}, {"nginx", []int{1, 64}, []Value{{18, 18, 18}, {4, 4, 5}}}}}
	dir := filepath.Join(t.TempDir(), "plots") // is made
	if err := bars.Save(dir, "bars"); err != nil {
		t.Fatal(err)
	}
	if err := lines.Save(dir, "lines"); err != nil {
		t.Fatal(err)
	}
	for name, words := range map[string][]string{
		"bars":  {"sixteen pipelined requests", "CPU", "chert", "nethttp", "none", "5.5"},
		"lines": {"over connections", "connections", "CPU", "chert", "nginx", "64"},
	} {
		checkPNG(t, filepath.Join(dir, name+".png"))
		text := checkSVG(t, filepath.Join(dir, name+".svg"))
		for _, word := range words {
			if !strings.Contains(text, ">"+word+"<") {
				t.Errorf("%s.svg lacks the text %q", name, word)
			}
		}
	}
}

func TestRoundTicks(t *testing.T) {
	var got []string
	for _, tick := range roundTicks(0.4, 51) {
		got = append(got, tick.Label)
	}
	if want := []string{"0.5", "1", "2", "5", "10", "20", "50"}; !slices.Equal(got, want) {
		t.Errorf("ticks %q, want %q", got, want)
	}
}

func TestSaveFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (Bars{Bars: []Bar{{"chert", Value{1, 1, 1}}}}).Save(file, "bars"); err == nil {
		t.Error("no error although the folder is a file")
	}
}

func checkPNG(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if b := img.Bounds(); b.Dx() < 200 || b.Dy() < 200 {
		t.Errorf("%s: %v", path, b)
	}
}

// checkSVG reads the whole file as XML and returns it.
func checkSVG(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(string(text)))
	root := ""
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if start, ok := token.(xml.StartElement); ok && root == "" {
			root = start.Name.Local
		}
	}
	if root != "svg" {
		t.Errorf("%s: the root element is %q", path, root)
	}
	return string(text)
}

func TestSaveGroupsAndStacks(t *testing.T) {
	dir := t.TempDir()
	groups := Groups{Title: "kept or not", Axis: "requests per second", Names: []string{"chert", "nginx", "h2o"},
		Kinds: []Kind{{"kept", []float64{220000, 210000, 1}}, {"closed", []float64{60000, 70000, 0}}}}
	stacks := Stacks{Title: "where it goes", Axis: "microseconds", Names: []string{"chert", "nginx"},
		Parts: []Kind{{"read", []float64{1, 1.2}}, {"write", []float64{2, 2.2}}, {"user", []float64{0.5, 0.01}}}}
	for name, d := range map[string]Drawing{"groups": groups, "stacks": stacks} {
		if err := d.Save(dir, name); err != nil {
			t.Fatal(err)
		}
		for _, ground := range []string{"", "-dark"} {
			checkPNG(t, filepath.Join(dir, name+ground+".png"))
			text := checkSVG(t, filepath.Join(dir, name+ground+".svg"))
			for _, word := range []string{"chert", "nginx"} {
				if !strings.Contains(text, ">"+word+"<") {
					t.Errorf("%s%s lacks the text %q", name, ground, word)
				}
			}
		}
	}
}

// The names at the ends of lines that end at the same place do not cover each other; one point alone is drawn too.
func TestNamesApart(t *testing.T) {
	value := []Value{{5, 5, 5}}
	lines := Lines{Title: "at one place", XAxis: "connections", YAxis: "CPU",
		Lines: []Line{{"one", []int{64}, value}, {"two", []int{64}, value}, {"three", []int{64}, value}}}
	p, _, err := lines.draw(themes[0])
	if err != nil {
		t.Fatal(err)
	}
	if !(p.X.Min < p.X.Max) || !(p.Y.Min < p.Y.Max) {
		t.Errorf("axes %v to %v, %v to %v", p.X.Min, p.X.Max, p.Y.Min, p.Y.Max)
	}
	dir := t.TempDir()
	if err := lines.Save(dir, "lines"); err != nil {
		t.Fatal(err)
	}
	checkPNG(t, filepath.Join(dir, "lines-dark.png"))
}
