package unlike

// A Difference is one that is meant, from net/http's server.
type Difference struct {
	ID string
	// Title is the rest of its heading in docs/differences.md, which explains it.
	// Empty for one that is explained here alone, since it depends on chance, shows
	// only where a handler does what none should, or stands for others of the table.
	Title string
	// TablesOnly: nothing that the grammar of test/fuzz makes shows it.
	TablesOnly bool
}

// All is the table, in the order of the page.
var All []*Difference

// String is the ID, and for none that there is none.
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
	ExpectClose       = documented("expect-close", "closing a body that was not requested")
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

	// What follows has no heading.

	// With two faults in a request, which is found first.
	RefusalOrder = undocumented("refusal-order")
	// net/http sends the head as soon as ReadFrom has 512 bytes; chert holds back as much
	// as of any other body, and may then know the length (RFC 9112 section 6.3 allows
	// both).
	ReadFromFraming = undocumented("readfrom-framing")
	// What the part of the request names.
	Stricter = undocumented("stricter")
	// What the body names: what a read gives, and whether the connection is kept, differs
	// from there on.
	StricterChunks = undocumented("stricter-chunks")
	// net/http takes for malformed what is right: space before a chunk extension (chunk-
	// extensions), and a trailer section that its buffer of 4 KiB does not hold (head-
	// limits).
	LooserChunks = undocumented("looser-chunks")
	// What was left of the request's body has been read before the head was sent. A later
	// Read gets from net/http the error that was met there, or that the body is closed
	// even if the handler had its end; from chert that end, or that the body is closed.
	ReadBehindHead = undocumented("read-behind-head")
	// What Close of a malformed body gives when nothing reads the body on: it says what it
	// met, if it has looked.
	CloseError = undocumented("close-error")
	// io.Reader does not say whether a Read looks beyond what it gives: after the last
	// byte net/http finds the end and the trailers of a chunked body if they have come,
	// chert when it is asked for more. Nor does it look for them in Close if the
	// connection ends.
	EarlyEnd = undocumented("early-end")
	// With the head net/http has also read what was left of the request's body, and closed
	// it.
	ReadFromHead = undocumented("readfrom-head")
	// How much of an aborted answer has been sent.
	AbortedAnswer = undocumented("aborted-answer")
)
