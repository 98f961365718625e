package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// listenOver listens on a socket whose file takes the place of the one at path, as another program's would.
func listenOver(t *testing.T, path string) *net.UnixListener {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path + "2", Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if err := l.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"2", path); err != nil {
		t.Fatal(err)
	}
	return l
}

// reaches fails the test unless a client of path reaches l.
func reaches(t *testing.T, l *net.UnixListener, path string) {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("the other program's socket: %v", err)
	}
	defer c.Close()
	fmt.Fprint(c, "hello\n")
	there, err := l.Accept() // of a listening socket that has a connection
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	if line, err := bufio.NewReader(there).ReadString('\n'); line != "hello\n" {
		t.Errorf("the other program got %q, %v", line, err)
	}
}

// unixConn is a connection that stays open.
type unixConn struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func dialUnix(t *testing.T, path string) *unixConn {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &unixConn{t, c, bufio.NewReader(c)}
}

// check fails the test unless the connection is served.
func (c *unixConn) check() {
	c.t.Helper()
	fmt.Fprintf(c, "HEAD /f HTTP/1.1\r\nHost: x\r\n\r\n")
	res, err := http.ReadResponse(c.r, &http.Request{Method: "HEAD"})
	if err != nil || res.StatusCode != 200 {
		c.t.Fatalf("a connection from before: %v, %v", res, err)
	}
}

// download begins a response that does not fit into the buffers on the way.
func (c *unixConn) download() io.Reader {
	c.t.Helper()
	fmt.Fprintf(c, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
	res, err := http.ReadResponse(c.r, nil)
	if err != nil || res.StatusCode != 200 {
		c.t.Fatalf("%v, %v", res, err)
	}
	return res.Body
}

// startSockets starts chert on the sockets "s" and "admin" in a folder. configure writes its configuration.
func startSockets(t *testing.T, listen string) (p *proc, dir string, configure func(listen string)) {
	t.Helper()
	needSignals(t)
	dir = shortDir(t)
	write(t, filepath.Join(dir, "www", "f"), "x")
	write(t, filepath.Join(dir, "www", "big"), "")
	if err := os.Truncate(filepath.Join(dir, "www", "big"), bigSize); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".", filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	configure = func(listen string) {
		write(t, filepath.Join(dir, "c.toml"), "listen = "+listen+"\nadmin = 'unix:"+filepath.Join(dir, "admin")+"'\n"+
			"[[site]]\nhosts = '*'\nroot = 'www'\n")
	}
	configure(listen)
	p = start(t, "--config", filepath.Join(dir, "c.toml"))
	p.line() // of the admin page
	return p, dir, configure
}

func checkFile(t *testing.T, path string, there bool) {
	t.Helper()
	if _, err := os.Lstat(path); there != (err == nil) || !there && !os.IsNotExist(err) {
		t.Errorf("%s: %v", path, err)
	}
}

// The file that another program has put in the place of chert's stays when chert closes its socket.
func TestSocketOfSuccessor(t *testing.T) {
	for _, how := range []string{"stop", "reload", "admin", "twice", "never opened"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p, dir, configure := startSockets(t, "['127.0.0.1:0', 'unix:s']")
			sock := filepath.Join(dir, "s")
			if how == "admin" {
				sock = filepath.Join(dir, "admin")
			}
			c := dialUnix(t, filepath.Join(dir, "s"))
			c.check()
			other := listenOver(t, sock)
			switch how {
			case "reload":
				configure("'127.0.0.1:0'")
				p.reload()
				c.check()
			case "twice": // the second signal stops at once
				c.download()
				p.signal(syscall.SIGTERM)
				p.line()
				p.signal(os.Interrupt)
				p.waitFor(exitFailure)
			case "never opened": // a reload that fails
				configure("['127.0.0.1:0', 'unix:new', 'unix:www']")
				p.refuse()
				checkFile(t, filepath.Join(dir, "new"), false)
				c.check()
			}
			if how != "twice" {
				c.Close()
				p.signal(syscall.SIGTERM)
				p.waitFor(exitOK)
			}
			reaches(t, other, sock)
			for _, name := range []string{"s", "admin"} {
				if own := filepath.Join(dir, name); own != sock {
					checkFile(t, own, false)
				}
			}
		})
	}
}

// While chert drains, the name is free for a successor; it stays the successor's when the drain ends.
func TestSocketWhileDraining(t *testing.T) {
	t.Parallel()
	p, dir, _ := startSockets(t, "'unix:s'")
	sock := filepath.Join(dir, "s")
	c := dialUnix(t, sock)
	body := c.download()
	p.signal(syscall.SIGTERM)
	until(t, func() bool {
		_, err := os.Lstat(sock)
		return os.IsNotExist(err)
	})
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: sock, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if n, err := io.Copy(io.Discard, body); n != bigSize {
		t.Errorf("the download ended after %d bytes: %v", n, err)
	}
	p.waitFor(exitOK)
	reaches(t, l, sock)
}

// A reload makes the file of a socket again if it is gone, with its mode; connections from before stay.
func TestReloadSocketGone(t *testing.T) {
	t.Parallel()
	p, dir, configure := startSockets(t, "'unix:s?mode=0600'")
	sock := filepath.Join(dir, "s")
	before := dialUnix(t, sock)
	before.check()
	var open int
	for i := range 10 {
		if i%2 == 0 {
			if err := os.Remove(sock); err != nil {
				t.Fatal(err)
			}
		} else if err := listenOver(t, sock).Close(); err != nil { // its file stays: it knows it by the name from before
			t.Fatal(err)
		}
		if i == 1 {
			configure("'unix:s?mode=0666'")
		}
		p.reload()
		before.check()
		c := dialUnix(t, sock)
		c.check()
		c.Close()
		info, err := os.Lstat(sock)
		if want := []os.FileMode{0o600, 0o666}[min(i, 1)]; err != nil || info.Mode().Perm() != want {
			t.Errorf("reload %d: the file is %v, %v, want mode %v", i, info, err, want)
		}
		if i == 1 { // all there is is open by now, and what was replaced may be too
			open = descriptors(t, p)
		}
	}
	until(t, func() bool { return descriptors(t, p) <= open })
	before.Close()
	p.signal(syscall.SIGTERM)
	p.waitFor(exitOK)
	checkFile(t, sock, false)
	if said := p.stderr.String(); said != "" {
		t.Errorf("stderr: %s", said)
	}
}

// A file that is still the socket's, whatever its times and its path, is neither replaced nor taken for another's.
func TestReloadSocketSameFile(t *testing.T) {
	t.Parallel()
	p, dir, configure := startSockets(t, "'unix:link/s'")
	sock := filepath.Join(dir, "s")
	made, err := os.Lstat(sock)
	if err != nil {
		t.Fatal(err)
	}
	for _, listen := range []string{"'unix:link/s'", "'unix:s'", "'unix:link/s?mode=0600'", "'unix:s?mode=0666'"} {
		later := made.ModTime().Add(1e9)
		if err := os.Chtimes(sock, later, later); err != nil {
			t.Fatal(err)
		}
		configure(listen)
		p.reload()
		if now, err := os.Lstat(sock); err != nil || !os.SameFile(made, now) {
			t.Fatalf("%s: another file, %v", listen, err)
		}
		dialUnix(t, sock).check()
	}
	// The path that it was opened by is no longer one.
	if err := os.Remove(filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(sock, made.ModTime(), made.ModTime()); err != nil {
		t.Fatal(err)
	}
	configure("'unix:s?mode=0606'")
	p.reload()
	if now, err := os.Lstat(sock); err != nil || now.Mode().Perm() != 0o606 {
		t.Errorf("%v, %v", now, err)
	}
	p.signal(syscall.SIGTERM)
	p.waitFor(exitOK)
	checkFile(t, sock, false)
}

// A reload fails while another program has the path of a socket. Nothing changes, and connections from before stay.
func TestReloadSocketTaken(t *testing.T) {
	t.Parallel()
	p, dir, configure := startSockets(t, "'unix:s'")
	sock := filepath.Join(dir, "s")
	before := dialUnix(t, sock)
	before.check()
	other := listenOver(t, sock)
	configure("['unix:s?mode=0600', 'unix:new']")
	mode := func() os.FileMode {
		t.Helper()
		info, err := os.Lstat(sock)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	was := mode()
	for range 2 {
		want := "chert: reload: the socket that chert made is no longer at its path: the socket " + quote(sock) +
			" is in use; stop the program that holds it or choose another path for --listen\n" +
			"chert: reload: serving goes on as before\n"
		if said := p.refuse(); said != want {
			t.Errorf("said %q, want %q", said, want)
		}
		before.check()
		// It looked whether the socket is in use.
		c, err := other.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		reaches(t, other, sock)
		checkFile(t, filepath.Join(dir, "new"), false)
		if now := mode(); now != was {
			t.Errorf("the other program's file has mode %v, had %v", now, was)
		}
	}
	other.Close()
	// A program that another test is starting may have the listener until it has executed.
	servertest.Eventually(t, "the other program's socket is closed", func() bool {
		c, err := net.Dial("unix", sock)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	p.reload()
	c := dialUnix(t, sock)
	c.check()
	dialUnix(t, filepath.Join(dir, "new")).check()
	before.check()
}
