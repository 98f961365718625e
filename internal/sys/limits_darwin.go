package sys

// sysctl is for Linux only.
func sysctl(string) int { return 0 }
