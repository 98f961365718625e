package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/chert-http/chert/admin"
)

// soon is how much time a certificate has when it stands out.
const soon = 7 * 24 * time.Hour

// sites returns the configuration, the last reload if it failed, and the sites.
func sites(s *admin.Setup, at time.Time) (lines []line) {
	if s.Config != "" {
		lines = append(lines, line{text: fmt.Sprintf("%-12s %s, loaded %s", "configured", Clean(s.Config),
			s.Loaded.Local().Format(time.DateTime))})
	}
	if s.Reload != nil && s.Reload.Error != "" {
		lines = append(lines, line{fmt.Sprintf("%-12s of %s failed: %s", "reload",
			s.Reload.At.Local().Format(time.DateTime), Clean(s.Reload.Error)), warn})
	}
	const columns = "%-12s %-28s %-30s %s"
	lines = append(lines, line{fmt.Sprintf(columns, "EXPIRES IN", "CERTIFICATE", "HOSTS", "SERVES"), head})
	for _, site := range s.Sites {
		left, style, cert := "-", normal, site.Certificate
		if cert == "" {
			cert = "-"
		}
		if !site.Expires.IsZero() {
			d := site.Expires.Sub(at)
			if left = fmt.Sprintf("%d d", int(d.Hours()/24)); d <= 0 {
				left = "expired"
			}
			if d < soon {
				style = warn
			}
		}
		lines = append(lines, line{fmt.Sprintf(columns, left, Clean(cert), Clean(strings.Join(site.Hosts, ", ")),
			Clean(site.What)), style})
	}
	return lines
}
