package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// compose loads a compose file as docker compose does, which checks it against the schema of the specification and
// that all that it names is there.
func compose(ctx context.Context, file string, env ...string) (*types.Project, error) {
	o, err := cli.NewProjectOptions([]string{file}, cli.WithEnv(env), cli.WithResolvedPaths(true), cli.WithName("test"))
	if err != nil {
		return nil, err
	}
	return o.LoadProject(ctx)
}

const testSecret = "CHERT_SECRET=0123456789abcdef0123456789abcdef"

// TestCompose checks what docker compose makes of compose.yaml, and chert of its configuration.
func TestCompose(t *testing.T) {
	t.Parallel()
	p, err := compose(t.Context(), "deploy/compose.yaml", testSecret)
	if err != nil {
		t.Fatal(err)
	}
	if names := p.ServiceNames(); !slices.Equal(names, []string{"one", "redis", "two"}) {
		t.Fatalf("services: %q", names)
	}
	redis := p.Services["redis"]
	if h := redis.HealthCheck; h == nil || h.Disable || len(h.Test) < 2 || h.Test[0] != "CMD" {
		t.Errorf("redis is never healthy: %+v", h)
	}
	if v := redis.Volumes; len(v) != 1 || v[0].Type != "volume" || p.Volumes[v[0].Source].Name != "test_redis" {
		t.Errorf("redis: volumes %+v", v)
	}
	published := make(map[string]string)
	for _, name := range []string{"one", "two"} {
		checkInstance(t, p.Services[name], redis, published)
	}
	config, err := os.ReadFile("deploy/chert.toml")
	if err != nil {
		t.Fatal(err)
	}
	checkConfig(t, string(config))
}

// checkInstance checks a service that is an instance of chert. published has who has which port of the machine.
func checkInstance(t *testing.T, s, redis types.ServiceConfig, published map[string]string) {
	t.Helper()
	if s.Image != "chert" || s.PullPolicy != types.PullPolicyNever {
		t.Errorf("%s: image %q, pulled %q: it is built on the machine", s.Name, s.Image, s.PullPolicy)
	}
	env := s.Environment.ToMapping()
	if env["CHERT_REDIS"] != "redis://"+redis.Name+":6379/0" || "CHERT_SECRET="+env["CHERT_SECRET"] != testSecret {
		t.Errorf("%s: environment %v", s.Name, env)
	}
	if len(s.Ports) != 1 || s.Ports[0].Target != 8080 || published[s.Ports[0].Published] != "" {
		t.Errorf("%s: ports %+v, others have %v", s.Name, s.Ports, published)
	} else {
		published[s.Ports[0].Published] = s.Name
	}
	if d := s.DependsOn[redis.Name]; d.Condition != types.ServiceConditionHealthy || !d.Required {
		t.Errorf("%s begins before Redis responds: %+v", s.Name, s.DependsOn)
	}
	if s.StopGracePeriod == nil || time.Duration(*s.StopGracePeriod) < 50*time.Second { // shutdown_timeout, and a reserve
		t.Errorf("%s is killed while it drains: %v", s.Name, s.StopGracePeriod)
	}
	targets := make(map[string]string)
	for _, v := range s.Volumes {
		if v.Type != "bind" || !v.ReadOnly {
			t.Errorf("%s: volume %+v", s.Name, v)
		}
		targets[v.Target] = v.Source
	}
	here, err := filepath.Abs("deploy")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.Index(s.Command, "--config")
	if i < 0 || i+1 == len(s.Command) || targets[s.Command[i+1]] != filepath.Join(here, "chert.toml") {
		t.Errorf("%s: the command %q, volumes %v", s.Name, s.Command, targets)
	}
	if targets["/srv"] != filepath.Join(here, "www") {
		t.Errorf("%s: volumes %v", s.Name, targets)
	}
}

// TestComposeRefuses checks that the loader is strict: what is wrong with a file is an error.
func TestComposeRefuses(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("deploy/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ why, from, to, want string }{
		{"a key that there is not", "stop_grace_period:", "stop_grace:", "stop_grace"},
		{"a service that there is not", "redis: {condition", "other: {condition", "other"},
		{"a volume that there is not", "redis:/data", "data:/data", "data"},
		{"no secret", "", "", "openssl rand"},
		{"a condition that there is not", "service_healthy", "healthy", "condition"},
		{"a port that is none", "8081:8080", "8081:x", "containerPort: x"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "compose.yaml")
			if !strings.Contains(string(text), tt.from) {
				t.Fatalf("compose.yaml has no %q", tt.from)
			}
			if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), tt.from, tt.to)), 0o600); err != nil {
				t.Fatal(err)
			}
			var env []string
			if tt.from != "" {
				env = []string{testSecret}
			} else if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := compose(t.Context(), file, env...); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want an error about %q", err, tt.want)
			}
		})
	}
}
