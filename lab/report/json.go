package report

import (
	"encoding/json"
	"os"
	"runtime"
	"time"
)

// File is a JSON report: every round, and what the tables say of them.
type File struct {
	Profile     string          `json:"profile"`
	Time        time.Time       `json:"time"`
	Go          string          `json:"go"`
	Comparisons []Comparison    `json:"comparisons,omitempty"`
	Ratios      [][]Ratio       `json:"ratios,omitempty"` // one list for each comparison
	Besides     []Beside        `json:"besides,omitempty"`
	Readers     *Readers        `json:"readers,omitempty"`
	Streams     []Stream        `json:"streams,omitempty"`
	Fars        []Far           `json:"fars,omitempty"`
	Pages       []Pages         `json:"pages,omitempty"`
	Page        *Page           `json:"page,omitempty"`
	Idle        *Idle           `json:"idle,omitempty"`
	Broadcast   *Broadcast      `json:"broadcast,omitempty"`
	Held        []PerConnection `json:"per_connection,omitempty"`
	Errors      []string        `json:"errors"`
}

// Write fills in what follows from the rest and writes the file.
func (f File) Write(path string) error {
	f.Time = time.Now().UTC().Truncate(time.Second)
	f.Go = runtime.Version()
	for _, c := range f.Comparisons {
		f.Ratios = append(f.Ratios, c.Ratios())
	}
	if f.Idle != nil {
		f.Held = f.Idle.PerConnection()
	}
	text, err := json.MarshalIndent(f, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
