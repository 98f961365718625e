package browser

import (
	"bufio"
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// startTrouble runs a program of the lab, which this module cannot import, and returns
// the address of its page.
func startTrouble(t *testing.T, bin, name string) (origin string) {
	t.Helper()
	cmd := exec.Command(bin, name, "--admin", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() // its clients end with it
		cmd.Wait()
	})
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if url := regexp.MustCompile(`http://[^ \n]+`).FindString(line); url != "" {
			return strings.TrimSuffix(url, "/")
		}
	}
}

// shrink reduces a picture to its most frequent colors, which makes it a third as
// large.
func shrink(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	from, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	count := make(map[color.RGBA]int)
	area := from.Bounds()
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			count[color.RGBAModel.Convert(from.At(x, y)).(color.RGBA)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return count[b] - count[a] })
	var palette color.Palette
	for _, c := range colors { // those of a green dot are few, and unlike the others
		if len(palette) == 0 || len(palette) < 128 && distance(c, palette[palette.Index(c)].(color.RGBA)) > 12 {
			palette = append(palette, c)
		}
	}
	to := image.NewPaletted(area, palette)
	draw.Draw(to, area, from, area.Min, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func distance(a, b color.RGBA) int {
	far := 0
	for _, d := range []int{int(a.R) - int(b.R), int(a.G) - int(b.G), int(a.B) - int(b.B)} {
		far = max(far, d, -d)
	}
	return far
}

// Each of the usual troubles stands out on the page. With CHERT_SCREENSHOTS the
// pictures of docs/observability/troubles.md are taken.
func TestTroubles(t *testing.T) {
	if testing.Short() {
		t.Skip("several seconds for each")
	}
	bin := filepath.Join(t.TempDir(), "trouble")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", bin, "./trouble")
	build.Dir = "../../lab"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, name := range []string{"route", "clients", "slots", "lock", "collector"} { // one after another: all want processors
		t.Run(name, func(t *testing.T) {
			origin := startTrouble(t, bin, name)
			tab := openTab(t, origin)
			tab.look(t, 1000, 1360, "light", chromedp.EmulateScale(1))
			tab.visit(t, origin+"/")
			await(t, tab, `document.querySelector("#found li[data-kind=`+name+`]")`)
			if os.Getenv("CHERT_SCREENSHOTS") != "" {
				time.Sleep(45 * time.Second) // for lanes that have a history
				await(t, tab, `document.querySelector("#found li[data-kind=`+name+`]")`)
				tab.picture(t, "trouble-"+name)
				shrink(t, filepath.Join(os.Getenv("CHERT_SCREENSHOTS"), "trouble-"+name+".png"))
			}
		})
	}
}
