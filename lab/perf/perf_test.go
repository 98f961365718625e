package perf

import "testing"

const script = `
ffffffff81a3c2f0 tcp_sendmsg_locked
ffffffff81a3d000 tcp_sendmsg
ffffffff8139b000 ksys_write
ffffffff821ed511 do_syscall_64
ffffffff81e00000 entry_SYSCALL_64_after_hwframe
          4a1b2e runtime/internal/syscall.Syscall6
          4bbbbb main.serve

          4bbbbc main.parse
          4bbbbb main.serve

ffffffff81000000 asm_sysvec_apic_timer_interrupt
          4bbbbb [unknown]
`

func TestParse(t *testing.T) {
	p := parse(script)
	if len(p.Samples) != 3 {
		t.Fatalf("%d samples", len(p.Samples))
	}
	if got := p.Samples[0].Syscall(); got != "write" {
		t.Errorf("system call %q", got)
	}
	if got := p.Samples[1].Syscall(); got != "" || p.Samples[1].InKernel() {
		t.Errorf("user code: system call %q, kernel %t", got, p.Samples[1].InKernel())
	}
	if got := p.Share(Sample.InKernel); got < 0.66 || got > 0.67 {
		t.Errorf("share of the kernel %v", got)
	}
	if got := p.Syscalls(); len(got) != 1 || got["write"] < 0.33 || got["write"] > 0.34 {
		t.Errorf("system calls %v", got)
	}
	if !p.Samples[1].Has(func(s string) bool { return s == "main.serve" }) {
		t.Error("the caller is missing")
	}
}

func TestParseCounts(t *testing.T) {
	got := parseCounts("    calls syscall\n--------- ----------------\n     1234 write\n       56 epoll_pwait\n--------- ----------------\n     1290 total\n")
	if len(got) != 2 || got["write"] != 1234 || got["epoll_pwait"] != 56 {
		t.Errorf("counts %v", got)
	}
}
