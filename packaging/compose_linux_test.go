package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
)

// TestComposeRuns runs the services of compose.yaml with the image's files, their own commands, environment, volumes
// and health checks, without Docker: what differs is that they share the network, so that names and ports are others.
func TestComposeRuns(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can change the root folder")
	}
	need(t, "redis-server", "redis-server")
	need(t, "redis-cli", "redis-tools")
	p, err := compose(t.Context(), "deploy/compose.yaml", testSecret)
	if err != nil {
		t.Fatal(err)
	}
	dist := t.TempDir()
	if err := testProduct(t, testVersion).image(dist); err != nil {
		t.Fatal(err)
	}
	redis := startRedis(t, p.Services["redis"])
	var all []*container
	for i, name := range []string{"one", "two"} {
		root := filepath.Join(dist, "image", "linux", host.arch)
		if i == 0 {
			copyState(t, filepath.Join(dist, "image"), root)
		}
		all = append(all, startInstance(t, p.Services[name], root, redis))
	}
	for _, c := range all {
		before := decisions(t, redis)
		res, err := http.Get("http://127.0.0.1:" + c.port + "/page.txt")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK || string(body) != "of the volume\n" {
			t.Errorf("%s: %s %q %v", c.name, res.Status, body, err)
		}
		if n := decisions(t, redis); n <= before {
			t.Errorf("%s: Redis has decided about no request: %d, and %d before", c.name, n, before)
		}
	}
	for _, c := range all {
		if err := c.stop(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// container is what a service of the file would have.
type container struct {
	name, port string
	cmd        *exec.Cmd
	grace      time.Duration
}

// stop does what docker stop does. An error is that the process had to be killed, or its own.
func (c *container) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	kill := time.AfterFunc(c.grace, func() { c.cmd.Process.Kill() })
	defer kill.Stop()
	return c.cmd.Wait()
}

// await runs a health check until it is content.
func await(t *testing.T, name string, check func() *exec.Cmd) {
	t.Helper()
	var out []byte
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if out, err = check().CombinedOutput(); err == nil {
			return
		}
	}
	t.Fatalf("%s is not healthy: %v %s", name, err, out)
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// startRedis starts Redis with the command of its service, waits for its health check, and returns its port.
func startRedis(t *testing.T, s types.ServiceConfig) (port string) {
	t.Helper()
	port = freePort(t)
	cmd := exec.CommandContext(t.Context(), s.Command[0], append(s.Command[1:], "--port", port, "--bind", "127.0.0.1")...)
	cmd.Dir = t.TempDir() // in place of the volume /data, where the image begins
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	check := s.HealthCheck.Test[1:]
	await(t, s.Name, func() *exec.Cmd {
		return exec.CommandContext(t.Context(), check[0], append([]string{"-p", port}, check[1:]...)...)
	})
	return port
}

// decisions is how many scripts Redis has run: each request that is limited is one.
func decisions(t *testing.T, port string) (n int) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "redis-cli", "-e", "-p", port, "INFO", "commandstats").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`cmdstat_eval\w*:calls=(\d+)`).FindAllSubmatch(out, -1) {
		calls, _ := strconv.Atoi(string(m[1]))
		n += calls
	}
	return n
}

// startInstance starts chert in the root folder of the image, as its user, with the volumes of a service in it, and
// waits for the health check of the image.
func startInstance(t *testing.T, s types.ServiceConfig, root, redis string) *container {
	t.Helper()
	c := &container{name: s.Name, port: freePort(t), grace: time.Duration(*s.StopGracePeriod)}
	for _, v := range s.Volumes {
		mount(t, v, root, c)
	}
	env := []string{"PORT=" + c.port, "STATE_DIRECTORY=/var/lib/chert",
		"SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"}
	for name, value := range s.Environment.ToMapping() {
		env = append(env, name+"="+strings.ReplaceAll(value, "//redis:6379", "//127.0.0.1:"+redis))
	}
	inside := func(args []string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir, cmd.Env = "/", env
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		return cmd
	}
	c.cmd = inside(append(dockerfile(t, "ENTRYPOINT"), s.Command...))
	var log strings.Builder
	c.cmd.Stderr = &log
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.cmd.Process.Kill()
		c.cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %s", c.name, log.String())
		}
	})
	await(t, s.Name, func() *exec.Cmd { return inside(dockerfile(t, "HEALTHCHECK")) })
	return c
}

// mount puts what a volume has into the root folder. The configuration listens on the port of c, and www, which is the
// operator's, has a page.
func mount(t *testing.T, v types.ServiceVolumeConfig, root string, c *container) {
	t.Helper()
	target := filepath.Join(root, v.Target)
	if filepath.Base(v.Source) == "www" {
		if err := os.MkdirAll(target, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(target, "page.txt"), []byte("of the volume\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(v.Source)
	if err != nil {
		t.Fatal(err)
	}
	own := strings.Replace(string(text), `":8080"`, fmt.Sprintf("%q", ":"+c.port), 1)
	if own == string(text) {
		t.Fatalf("%s does not listen on the port that the service publishes", v.Source)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(target, []byte(own), 0o644); err != nil {
		t.Fatal(err)
	}
}
