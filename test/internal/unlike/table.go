package unlike

// A Difference is an intended difference from net/http's server.
type Difference struct {
	ID string
	// Title is the rest of its name in docs/differences.md, which explains
	// it. It is empty for one that is explained only here, since it depends on
	// chance, occurs only if a handler does what none should, or stands for
	// others of the table.
	Title string
	// TablesOnly: the grammar of test/fuzz never shows it.
	TablesOnly bool
}

// All is the table, in the order of the document.
var All []*Difference

// String returns the ID, and a text for nil.
func (d *Difference) String() string {
	if d == nil {
		return "as net/http does"
	}
	return d.ID
}

func documented(id, title string) *Difference { return add(&Difference{ID: id, Title: title}) }

func inTablesOnly(id, title string) *Difference {
	return add(&Difference{ID: id, Title: title, TablesOnly: true})
}

func undocumented(id string) *Difference { return add(&Difference{ID: id}) }

func add(d *Difference) *Difference {
	All = append(All, d)
	return d
}

var (
	RefusalText       = documented("refusal-text", "what a refusal says")
	RefusalStatus     = documented("refusal-status", "400 where chunked is not the last coding")
	EmptyLineFirst    = documented("empty-line-first", "empty lines before a request")
	BareLF            = documented("bare-lf", "LF without CR")
	ObsFold           = documented("obs-fold", "folded fields")
	TargetForm        = documented("target-form", "targets of the wrong form")
	Host              = documented("host", "an invalid Host")
	HTTP2Preface      = inTablesOnly("http2-preface", "HTTP/2's preface with fields")
	Framing           = documented("framing", "ambiguous length")
	EmptyListElements = documented("empty-list-elements", "commas around chunked")
	ExpectList        = documented("expect-list", "an expectation among others")
	CutHead           = documented("cut-head", "a head that ends early")
	HeadLimits        = documented("head-limits", "how large a head may be")
	HeadTimeout       = inTablesOnly("head-timeout", "a head that does not arrive in time")
	ChunkSize         = documented("chunk-size", "impossible sizes")
	ChunkExtensions   = documented("chunk-extensions", "what follows a size")
	ChunkErrors       = inTablesOnly("chunk-errors", "the error for a malformed chunk")
	Trailers          = documented("trailers", "which fields a trailer section may have")
	CutBody           = documented("cut-body", "a body that ends early")
	BodyRefusal       = documented("body-refusal", "handlers that ignore a bad body")
	ExpectClose       = documented("expect-close", "Body.Close after Expect")
	MaxBytes          = documented("max-bytes", "http.MaxBytesReader")
	RequestChanged    = documented("request-changed", "handlers that change the request")
	FullDuplex        = documented("full-duplex", "what EnableFullDuplex leaves unread")
	No1xxTo10         = documented("no-1xx-to-1.0", "interim responses to HTTP/1.0")
	ResponseLength    = documented("response-length", "an invalid Content-Length of the handler")
	ChunkSizes        = documented("chunk-sizes", "how a response is cut into chunks")
	CopiedHead        = inTablesOnly("copied-head", "when the head of a copied response is sent")
	ReadFromLength    = documented("readfrom-length", "more of a file than was declared")
	WriteTimeout      = inTablesOnly("write-timeout", "writing past a deadline")
	WriteError        = inTablesOnly("write-error", "writes after a failed one")
	ConnectionOptions = documented("connection-options", "options in Connection")
	HookConn          = inTablesOnly("hook-conn", "the net.Conn that hooks see")
	AfterHijack       = inTablesOnly("after-hijack", "the request and the response")
	HijackWrite       = documented("hijack-write", "what was written before")
	HijackContext     = inTablesOnly("hijack-context", "the context of a hijacked request")

	// The following have no heading.

	// Which of two faults in a request is found first.
	RefusalOrder = undocumented("refusal-order")
	// net/http sends the head as soon as ReadFrom has 512 bytes; chert buffers
	// as much as of any other body, and may then know the length (RFC 9112
	// section 6.3 allows both).
	ReadFromFraming = undocumented("readfrom-framing")
	// The rule that the part of the request names.
	Stricter = undocumented("stricter")
	// The rule that the body names: the results of reads, and whether the
	// connection is kept, differ from there on.
	StricterChunks = undocumented("stricter-chunks")
	// net/http treats as malformed what is valid: space before a chunk
	// extension (chunk-extensions), and a trailer section that its buffer of 4
	// KiB does not hold (head-limits).
	LooserChunks = undocumented("looser-chunks")
	// The rest of the request's body has been read before the head was sent. A
	// later Read returns, from net/http, the error that was met there, or that
	// the body is closed even if the handler had its end; from chert that end,
	// or that the body is closed.
	ReadBehindHead = undocumented("read-behind-head")
	// What Close of a malformed body returns when nothing reads the rest: it
	// returns the error that it met, if it has read that far.
	CloseError = undocumented("close-error")
	// io.Reader does not define whether a Read looks beyond what it returns:
	// after the last byte net/http finds the end and the trailers of a chunked
	// body if they have arrived, chert at the next Read. Nor does chert look
	// for them in Close if the connection ends.
	EarlyEnd = undocumented("early-end")
	// With the head net/http has also read the rest of the request's body, and
	// closed it.
	ReadFromHead = undocumented("readfrom-head")
	// How much of an aborted response has been sent.
	AbortedAnswer = undocumented("aborted-answer")
)
