package servertest

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"os"
	"testing"
)

// Upload returns a request with a file that ParsedFile writes to disk.
func Upload(path string) string {
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	part, _ := form.CreateFormFile("f", "f")
	part.Write(make([]byte, 11<<20)) // up to 10 MiB more than the limit of ParseMultipartForm are kept in memory
	form.Close()
	return Post(path, b.String(), "Content-Type: "+form.FormDataContentType())
}

// ParsedFile parses the form of Upload, and returns the name of its file on disk.
func ParsedFile(t testing.TB, r *http.Request) string {
	if err := r.ParseMultipartForm(1); err != nil {
		t.Error(err)
		return ""
	}
	f, err := r.MultipartForm.File["f"][0].Open()
	if err != nil {
		t.Error(err)
		return ""
	}
	defer f.Close()
	file, ok := f.(*os.File)
	if !ok {
		t.Error("the file is in memory")
		return ""
	}
	return file.Name()
}
