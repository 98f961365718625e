package engines

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"testing"
)

// Random returns n pseudo-random bytes, the same for the same n.
func Random(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)}).Read(b)
	return b
}

// Upload posts a form with a file of n bytes in the field "file", streamed, in
// chunks of no known length, or whole. It returns status and body of the
// response.
func (s *Server) Upload(t *testing.T, path, name string, n int, streamed bool) (int, string) {
	t.Helper()
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", name)
	if err != nil {
		t.Fatal(err)
	}
	part.Write(Random(n))
	w.Close()
	body := io.Reader(&form)
	if streamed {
		body = io.MultiReader(body) // a type whose length the client cannot know
	}
	res, got := s.Do(t, "POST", path, body, "Content-Type", w.FormDataContentType())
	return res.StatusCode, got
}

// Uploaded is the examples' response to Upload.
func Uploaded(name string, n int) string {
	return fmt.Sprintf("%s %d %x\n", name, n, sha256.Sum256(Random(n)))
}
