package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/chert-http/chert"
)

// madeCert runs "chert cert" for certificates in dir.
func madeCert(t *testing.T, dir string, args ...string) (stdout string) {
	t.Helper()
	code, stdout, stderr := inProcess(t, append([]string{"cert", "--dir", dir}, args...)...)
	if code != exitOK || stderr != "" {
		t.Fatalf("chert cert %q: %d %s", args, code, stderr)
	}
	return stdout
}

// contents returns all files of a folder by name.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(text)
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if secret := strings.Contains(string(text), "PRIVATE KEY"); runtime.GOOS != "windows" && secret != (info.Mode().Perm() == 0o600) {
			t.Errorf("%s has the mode %v", e.Name(), info.Mode())
		}
	}
	return all
}

// The certificates work with curl, an implementation other than crypto/tls, on both sides.
func TestCertCurl(t *testing.T) {
	t.Parallel()
	needCurl(t)
	dir := filepath.Join(t.TempDir(), "a", "b") // is made
	if out := madeCert(t, dir, "localhost", "127.0.0.1"); !strings.Contains(out, "update-ca-certificates") || !strings.Contains(out, quote(filepath.Join(dir, "ca.pem"))) {
		t.Errorf("does not say how to trust the authority: %s", out)
	}
	if out := madeCert(t, dir, "--client", "alice"); strings.Contains(out, "update-ca-certificates") {
		t.Errorf("says again how to trust the authority: %s", out)
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca)
	srv := &chert.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "hello "+r.TLS.PeerCertificates[0].Subject.CommonName)
		}),
		TLSConfig: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients},
	}
	l, err := srv.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.ServeTLS(l, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")) }()
	defer func() {
		srv.Close()
		<-done
	}()
	_, port, _ := strings.Cut(l.Addr().String(), ":")
	for _, host := range []string{"127.0.0.1", "localhost"} {
		out, err := exec.Command("curl", "-sS", "--noproxy", "*", "--max-time", "20", "--ipv4", "--cacert", filepath.Join(dir, "ca.pem"),
			"--cert", filepath.Join(dir, "client.pem"), "--key", filepath.Join(dir, "client-key.pem"), "https://"+host+":"+port+"/").CombinedOutput()
		if err != nil || string(out) != "hello alice" {
			t.Errorf("%s: %s %v", host, out, err)
		}
	}
	out, err := exec.Command("curl", "-sS", "--noproxy", "*", "--max-time", "20", "--resolve", "other.test:"+port+":127.0.0.1", "--cacert", filepath.Join(dir, "ca.pem"),
		"https://other.test:"+port+"/").CombinedOutput()
	if err == nil {
		t.Errorf("curl accepts another name: %s", out)
	}
}

// An authority is reused, a certificate is replaced only with --force, and an error changes nothing.
func TestCertFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	madeCert(t, dir, "localhost")
	first := contents(t, dir)
	if len(first) != 4 {
		t.Fatalf("made %d files", len(first))
	}
	in := func(name string) string { return quote(filepath.Join(dir, name)) }
	oneLine(t, exitFailure, "chert: "+in("cert.pem")+" exists; --force replaces it, --name and --dir choose another place", "cert", "--dir", dir, "localhost")
	oneLine(t, exitFailure, "chert: the authority may not sign for example.com: "+in("ca.pem")+" was made for other names; make another authority for these in another --dir",
		"cert", "--dir", dir, "--force", "localhost", "example.com")
	oneLine(t, exitFailure, "chert: --unconstrained is for a new authority, and "+in("ca.pem")+" exists; make another in another --dir",
		"cert", "--dir", dir, "--force", "--unconstrained", "localhost")
	for name, text := range contents(t, dir) {
		if first[name] != text {
			t.Errorf("%s has changed", name)
		}
	}

	madeCert(t, dir, "--name", "other", "localhost")
	if runtime.GOOS != "windows" { // a file that others can read is not written through
		if err := os.Chmod(filepath.Join(dir, "key.pem"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	madeCert(t, dir, "--force", "--days", "3", "localhost", "a.test")
	second := contents(t, dir)
	if len(second) != 6 || second["ca.pem"] != first["ca.pem"] || second["ca-key.pem"] != first["ca-key.pem"] {
		t.Errorf("%d files, or the authority was replaced", len(second))
	}
	if second["cert.pem"] == first["cert.pem"] || second["key.pem"] == first["key.pem"] || second["other.pem"] == "" || second["other-key.pem"] == "" {
		t.Error("the certificate was not replaced")
	}
	if _, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")); err != nil {
		t.Error(err)
	}
}

// Each error is one line that says what to do, and leaves no file.
func TestCertErrors(t *testing.T) {
	t.Parallel()
	good := t.TempDir()
	madeCert(t, good, "localhost")
	all := contents(t, good)
	other := t.TempDir()
	madeCert(t, other, "localhost")
	for _, tt := range []struct {
		ca, key string // contents; "" for no file
		want    string // CA and KEY stand for the paths
	}{
		{all["ca.pem"], "", "CA exists without KEY; restore that, or make another authority in another --dir"},
		{"", all["ca-key.pem"], "KEY exists without CA; restore that, or make another authority in another --dir"},
		{"x", all["ca-key.pem"], "cannot use CA: there is no certificate in PEM"},
		{all["ca.pem"], "x", "cannot use KEY: there is no private key in PEM"},
		{all["ca.pem"], contents(t, other)["ca-key.pem"], "cannot sign with CA and KEY: the key is not that of the certificate; make another authority in another --dir"},
		{all["cert.pem"], all["key.pem"], "cannot sign with CA and KEY: the certificate is not an authority's; make another authority in another --dir"},
	} {
		dir := t.TempDir()
		ca, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca-key.pem")
		n := 0
		for path, text := range map[string]string{ca: tt.ca, key: tt.key} {
			if text != "" {
				write(t, path, text)
				n++
			}
		}
		oneLine(t, exitFailure, "chert: "+strings.NewReplacer("CA", quote(ca), "KEY", quote(key)).Replace(tt.want), "cert", "--dir", dir, "localhost")
		if entries, _ := os.ReadDir(dir); len(entries) != n {
			t.Errorf("%s: %d files", tt.want, len(entries))
		}
	}

	if runtime.GOOS == "windows" {
		return // its errors have other words
	}
	// What was made before the error is removed.
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "")
	oneLine(t, exitFailure, "chert: cannot write "+quote(filepath.Join(dir, "file", "cert.pem"))+": not a directory; choose another folder with --dir", "cert", "--dir", filepath.Join(dir, "file"), "localhost")
	write(t, filepath.Join(dir, "cert.pem.new", "x"), "")
	oneLine(t, exitFailure, "chert: cannot write "+quote(filepath.Join(dir, "cert.pem"))+": file exists; choose another folder with --dir", "cert", "--dir", dir, "--force", "localhost")
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("%d files are left", len(entries))
	}
}

func TestCertUsage(t *testing.T) {
	t.Parallel()
	const see = `; see "chert cert --help"`
	for want, args := range map[string][]string{
		`no names given; want those that clients use, as in "chert cert localhost 127.0.0.1 ::1"`:     nil,
		`"localhost:8080": want a name or an address alone, without a port or brackets`:               {"localhost:8080"},
		`--days wants a number from 1 to 397`:                                                         {"--days", "398", "localhost"},
		`--days wants a number from 1 to 397 `:                                                        {"--days", "0", "localhost"},
		`--name wants a name without a folder; that is for --dir`:                                     {"--name", "a/b", "localhost"},
		`--name wants a name without a folder; that is for --dir `:                                    {"--name", "..", "localhost"},
		`--name ca is the authority's; choose another`:                                                {"--name", "ca", "localhost"},
		`--dir wants the name of a folder`:                                                            {"--dir", "", "localhost"},
		`--client wants one name, as in "chert cert --client alice"`:                                  {"--client"},
		`--client wants one name, as in "chert cert --client alice" `:                                 {"--client", "alice", "bob"},
		`--client wants a name of 1 to 64 bytes`:                                                      {"--client", ""},
		`"0.0.0.0" is where a server listens; give the addresses that clients use, such as 127.0.0.1`: {"0.0.0.0"},
	} {
		oneLine(t, exitUsage, "chert: "+strings.TrimSpace(want)+see, append([]string{"cert"}, args...)...)
	}
}
