package stats

// A Store is the state of one through which processes share topics or rooms, as the packages
// redistopic, natstopic and redisroom return it: what one process has counted since it was opened.
type Store struct {
	// Name is what the store is for, "topics" or "rooms"; a program with several may change it.
	Name string `json:"name"`
	// Away is whether the store does not respond.
	Away bool `json:"away"`
	// Streams is how many topics or rooms are being read: those that this process has clients of.
	Streams int `json:"streams"`
	// Read is how many events have been read from the store, each once.
	Read uint64 `json:"read"`
	// Published is how many events have been stored, Failed how many not, or of which that is
	// not known, and Waiting how many wait for the store.
	Published uint64 `json:"published"`
	Failed    uint64 `json:"failed"`
	Waiting   int    `json:"waiting"`
	// Cuts is how many connections that read have ended, and Gaps how often a topic or room has
	// been found to lack its newest event: clients have been told that some are missing.
	Cuts uint64 `json:"cuts"`
	Gaps uint64 `json:"gaps"`
}
