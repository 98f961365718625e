package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// manifests are the objects of the file for Kubernetes, by kind. A field that Kubernetes does not know is
// an error.
func manifests(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("deploy/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{
		"ConfigMap": new(corev1.ConfigMap), "Deployment": new(appsv1.Deployment), "Service": new(corev1.Service),
		"PodDisruptionBudget": new(policyv1.PodDisruptionBudget), "NetworkPolicy": new(networkingv1.NetworkPolicy),
		"HorizontalPodAutoscaler": new(autoscalingv2.HorizontalPodAutoscaler),
	}
	seen := 0
	for _, one := range bytes.Split(text, []byte("\n---\n")) {
		var kind struct{ Kind string }
		if err := yaml.Unmarshal(one, &kind); err != nil {
			t.Fatal(err)
		}
		to := all[kind.Kind]
		if to == nil {
			t.Fatalf("there is no test for a %q", kind.Kind)
		}
		if err := yaml.UnmarshalStrict(one, to); err != nil {
			t.Errorf("%s: %v", kind.Kind, err)
		}
		seen++
	}
	if seen != len(all) {
		t.Errorf("%d objects, want %d", seen, len(all))
	}
	return all
}

// TestKubernetes checks the manifests against the types of Kubernetes, and what belongs together.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	all := manifests(t)
	pod := all["Deployment"].(*appsv1.Deployment).Spec.Template
	c := pod.Spec.Containers[0]
	config := all["ConfigMap"].(*corev1.ConfigMap).Data["chert.toml"]
	for name, selector := range map[string]map[string]string{
		"Deployment": all["Deployment"].(*appsv1.Deployment).Spec.Selector.MatchLabels,
		"Service":    all["Service"].(*corev1.Service).Spec.Selector,
		"budget":     all["PodDisruptionBudget"].(*policyv1.PodDisruptionBudget).Spec.Selector.MatchLabels,
		"policy":     all["NetworkPolicy"].(*networkingv1.NetworkPolicy).Spec.PodSelector.MatchLabels,
	} {
		if selector["app"] != pod.Labels["app"] {
			t.Errorf("%s selects %v", name, selector)
		}
	}
	for _, p := range all["Service"].(*corev1.Service).Spec.Ports {
		found := false
		for _, has := range c.Ports {
			found = found || has.Name == p.TargetPort.StrVal
		}
		if !found {
			t.Errorf("the container has no port %q", p.TargetPort.StrVal)
		}
	}
	// The pod is killed after the sleep, the drain, and a reserve.
	sleep := time.Duration(c.Lifecycle.PreStop.Sleep.Seconds) * time.Second
	grace := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	if !strings.Contains(config, `shutdown_timeout = "45s"`) || grace < sleep+45*time.Second+5*time.Second {
		t.Errorf("a grace of %v for a sleep of %v", grace, sleep)
	}
	// Nodes stop sending before the drain begins.
	if probe := c.ReadinessProbe; time.Duration(probe.PeriodSeconds*probe.FailureThreshold)*time.Second >= sleep {
		t.Error("the drain begins before the pod is known not to be ready")
	}
	checkConfig(t, config)
}

// checkConfig runs chert check, with a folder of this machine.
func checkConfig(t *testing.T, config string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "chert.toml")
	config = strings.ReplaceAll(config, `"/srv"`, `"`+dir+`/www"`)
	if err := os.Mkdir(filepath.Join(dir, "www"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", "-buildvcs=false", "./cmd/chert", "check", file)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "CHERT_REDIS=redis://redis:6379/0", "CHERT_SECRET=0123456789abcdef0123456789abcdef")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "shared with other instances: rate limits") {
		t.Errorf("%v: %s", err, out)
	}
}
