package h2

// The budgets of a connection; see bridge.Budget.
const (
	// resetBudget is for streams that end before their answer does, by the client or
	// because of it (CVE-2023-44487, CVE-2025-8671): so many, and resetRate more each
	// second. Each request that is answered gives one back.
	resetBudget = 500
	resetRate   = 50
	// idleBudget is for frames that do nothing: PING, SETTINGS, PRIORITY, WINDOW_UPDATE,
	// empty DATA, frames of streams that are closed, and unknown ones. Each
	// request and each DATA frame that is sent gives usefulWorth back.
	idleBudget  = 10_000
	idleRate    = 330
	usefulWorth = 4
	// uselessSize is how many bytes of a header block that does nothing count as one frame,
	// as they are on the wire or as SETTINGS_MAX_HEADER_LIST_SIZE counts them: decoding 10,000 of
	// the largest would take seconds.
	uselessSize = 2 << 10
	// maxFields bounds the fields of all streams of a connection, in times of what one
	// request may have: a reference of a byte stands for as many bytes as the table has, and the
	// handler may keep them.
	maxFields = 64
	// maxContinuations bounds the frames of one header block (CVE-2024-27316), besides those
	// that a large one needs.
	maxContinuations = 16
)
