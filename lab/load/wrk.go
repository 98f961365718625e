package load

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/exchange"
)

// Run is one run of wrk.
type Run struct {
	Addr        string
	Request     exchange.Request
	Order       *Order // if not nil, GETs of its paths instead of Request
	From        int    // the place in the order to begin at
	Connections int
	Seconds     int
	Core        int // the one core wrk's one thread runs on
	TLS         bool
	Patience    int // seconds until wrk counts an answer as late; 0: its default, 2
}

// Wrk runs wrk to its end. Failed requests are no error here: they are counted in the result.
func (r Run) Wrk(ctx context.Context) (Result, error) {
	args := []string{"wrk", "--latency", "-t", "1", "-c", strconv.Itoa(r.Connections), "-d", strconv.Itoa(r.Seconds) + "s"}
	if r.Patience > 0 {
		args = append(args, "--timeout", strconv.Itoa(r.Patience)+"s")
	}
	if r.Order != nil || r.Request != exchange.Get(r.Request.Path) {
		dir, err := os.MkdirTemp("", "chert-lab-wrk-")
		if err != nil {
			return Result{}, err
		}
		defer os.RemoveAll(dir)
		path, err := r.writeScript(dir)
		if err != nil {
			return Result{}, err
		}
		args = append(args, "-s", path)
	}
	scheme := "http://"
	if r.TLS {
		scheme = "https://"
	}
	args = append(args, scheme+r.Addr+r.Request.Path)
	wrk, err := child.Run(ctx, child.Command{Args: args, Cores: []int{r.Core}})
	if err != nil {
		return Result{}, err
	}
	res, err := Parse(wrk.Stdout)
	if err != nil {
		return Result{}, fmt.Errorf("output of wrk: %w\n%s", err, wrk.Stdout)
	}
	res.CPU = wrk.CPU
	return res, nil
}

// writeScript defines for wrk what is not in its URL. wrk calls a function named request before every write; without
// one it sends the same bytes again and again, which is why there is none but for pipelining.
func (run Run) writeScript(dir string) (path string, err error) {
	path = filepath.Join(dir, "request.lua")
	if run.Order != nil {
		return path, os.WriteFile(path, []byte(run.Order.script(run.From)), 0o600)
	}
	r := run.Request
	body := filepath.Join(dir, "body")
	if err := os.WriteFile(body, []byte(r.Body), 0o600); err != nil {
		return "", err
	}
	script := fmt.Sprintf("wrk.method = %q\n", r.Method)
	if r.Type != "" {
		script += fmt.Sprintf("wrk.headers[\"Content-Type\"] = %q\n", r.Type)
	}
	if r.Body != "" {
		script += fmt.Sprintf("wrk.body = io.open(%q, \"rb\"):read(\"*a\")\n", body)
	}
	if r.Close {
		script += "wrk.headers[\"Connection\"] = \"close\"\n"
	}
	for i := range r.Fields {
		name, value := r.Field(i)
		script += fmt.Sprintf("wrk.headers[%q] = %q\n", name, value)
	}
	if r.Depth() > 1 {
		script += fmt.Sprintf("local all\ninit = function() all = string.rep(wrk.format(), %d) end\n", r.Depth())
		script += "request = function() return all end\n"
	}
	return path, os.WriteFile(path, []byte(script), 0o600)
}
