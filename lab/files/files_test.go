package files

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestWrite(t *testing.T) {
	all := []File{
		{Name: "/a.css", Size: 1 << 10},
		{Name: "/d00/empty.js"},
		{Name: "/d00/b.png", Size: 300_001}, // no multiple of a buffer
		{Name: "/huge.iso", Size: 10 << 30, Sparse: true},
	}
	dir, err := Write(t.TempDir(), all)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		name := filepath.Join(dir, f.Name)
		info, err := os.Stat(name)
		if err != nil || info.Size() != f.Size || !info.ModTime().Equal(modified) {
			t.Fatalf("%s: %+v, %v", f.Name, info, err)
		}
		if f.Sparse {
			continue
		}
		got, err := os.ReadFile(name)
		want, errWant := f.Content()
		if err != nil || errWant != nil || string(got) != want {
			t.Errorf("%s: %d bytes, not those of Content: %v, %v", f.Name, len(got), err, errWant)
		}
	}
	if _, err := all[3].Content(); err == nil {
		t.Error("the content of a sparse file has no error")
	}
	// A server that is not root any more must get at them.
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		want := fs.FileMode(0o644)
		if d.IsDir() {
			want = 0o755
		}
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s: %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if dir, err := Write(t.TempDir(), []File{{Name: "/twice"}, {Name: "/twice"}}); err == nil || dir == "" {
		t.Errorf("the same name twice: %q, %v", dir, err)
	}
}

func TestWeb(t *testing.T) {
	all := Web(1, 10_000)
	if !reflect.DeepEqual(all, Web(1, 10_000)) || reflect.DeepEqual(all, Web(2, 10_000)) {
		t.Error("they do not follow from the seed, or from nothing else")
	}
	names := map[string]bool{}
	small, large := 0, 0
	for _, f := range all {
		if f.Size < smallest || f.Size > largest {
			t.Errorf("%+v", f)
		}
		if f.Size < medianSize {
			small++
		}
		if f.Size > 64<<10 {
			large++
		}
		names[f.Name] = true
	}
	if len(names) != len(all) || small < 4800 || small > 5200 || large < 1200 || large > 1500 {
		t.Errorf("%d names, %d files below the median, %d above 64 KiB", len(names), small, large)
	}
	if total := Total(all); total < 380e6 || total > 440e6 {
		t.Errorf("%d bytes", total)
	}
}

func TestZipf(t *testing.T) {
	const n, count = 1000, 100_000
	drawn := Zipf(1, n, 1, count)
	if !reflect.DeepEqual(drawn, Zipf(1, n, 1, count)) || reflect.DeepEqual(drawn, Zipf(2, n, 1, count)) {
		t.Error("they do not follow from the seed, or from nothing else")
	}
	times := make([]int, n)
	for _, i := range drawn {
		times[i]++
	}
	first, second, asked := 0, 0, 0
	for _, k := range times {
		if k > first {
			first, second = k, first
		} else if k > second {
			second = k
		}
		if k > 0 {
			asked++
		}
	}
	// The first of 1000 has a weight of 1 in 7.485.
	if first < 13_000 || first > 13_700 || second < 6_400 || second > 7_000 || asked < 990 {
		t.Errorf("the first was drawn %d times, the second %d times, and %d at all", first, second, asked)
	}
	if got := Zipf(1, 1, 0.9, 3); !reflect.DeepEqual(got, []int{0, 0, 0}) {
		t.Errorf("of one: %v", got)
	}
}
