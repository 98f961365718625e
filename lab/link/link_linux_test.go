package link

import (
	"os"
	"strings"
	"testing"

	"github.com/chert-http/chert/lab/child"
)

func TestCheck(t *testing.T) {
	for mtu, good := range map[int]bool{0: false, 67: false, 68: true, 1500: true, 65535: true, 65536: false, -1: false} {
		if err := (Options{MTU: mtu}).Check(); (err == nil) != good {
			t.Errorf("MTU %d: %v", mtu, err)
		}
	}
}

func TestLink(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	l, err := Open(t.Context(), Options{MTU: 1400, Congestion: "reno"})
	if err != nil {
		t.Skip("no namespaces here: ", err) // root of a container may not have them
	}
	inside := func(args ...string) string {
		args, err := l.Enter(args)
		if err != nil {
			t.Fatal(err)
		}
		out, err := child.Run(t.Context(), child.Command{Args: args})
		if err != nil {
			t.Error(err)
		}
		return out.Stdout
	}
	if out := inside("ip", "-4", "addr"); !strings.Contains(out, l.Addr+"/30") || !strings.Contains(out, "mtu 1400") {
		t.Errorf("addresses: %s", out)
	}
	if out := inside("ip", "route"); !strings.Contains(out, "congctl reno") {
		t.Errorf("routes: %s", out)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if out, err := child.Run(t.Context(), child.Command{Args: []string{"ip", "netns", "list"}}); err != nil || strings.Contains(out.Stdout, l.name) {
		t.Errorf("left behind: %v, %s", err, out.Stdout)
	}
	// What fails in the middle leaves nothing either.
	if _, err := Open(t.Context(), Options{MTU: 1400, Congestion: "none such"}); err == nil {
		t.Error("no error for an unknown congestion control")
	}
	if out, _ := child.Run(t.Context(), child.Command{Args: []string{"ip", "link"}}); strings.Contains(out.Stdout, l.near) {
		t.Errorf("left behind: %s", out.Stdout)
	}
}
