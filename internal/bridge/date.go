package bridge

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/sys"
)

// date is the Date field for a part of a second.
type date struct {
	from, until int64 // of sys.Nanotime
	line        string
}

// ClockAtZero is wire.Clock when sys.Nanotime was 0.
var ClockAtZero = wire.ClockAt(sys.Epoch())

var lastDate atomic.Pointer[date]

// dateFor bounds the use of a date, so that it follows changes of the system clock.
const dateFor = int64(time.Second)

// AppendDate appends the Date field for now, of sys.Nanotime, which is the
// current time or just before.
func AppendDate(b []byte, now int64) []byte { return append(b, dateAt(now)...) }

// DateValue is the value of that field.
func DateValue(now int64) string {
	line := dateAt(now)
	return line[len("Date: ") : len(line)-len("\r\n")]
}

func dateAt(now int64) (line string) {
	d := lastDate.Load()
	if d == nil || now < d.from || now >= d.until {
		d = newDate()
		lastDate.Store(d)
	}
	return d.line
}

func newDate() *date {
	now, at := time.Now(), sys.Nanotime()
	return &date{
		from:  at - int64(now.Nanosecond()),
		until: at + dateFor - int64(now.Nanosecond()),
		line:  "Date: " + now.UTC().Format(http.TimeFormat) + "\r\n",
	}
}
