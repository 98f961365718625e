package rival

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"

	"github.com/chert-http/chert/lab/serve"
)

// writeCertificate writes cert.pem and key.pem into dir: of the same kind as those of the servers written in Go.
func writeCertificate(dir string) error {
	c := serve.Certificate()
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return err
	}
	write := func(name, kind string, der []byte) error {
		return os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
	}
	if err := write("cert.pem", "CERTIFICATE", c.Certificate[0]); err != nil {
		return err
	}
	return write("key.pem", "PRIVATE KEY", key)
}
