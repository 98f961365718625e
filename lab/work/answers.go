package work

import "encoding/json"

// Hello is the smallest answer.
const Hello = "Hello, World!"

// MaxBody is how large a request's body may be: servers that read bodies into memory refuse larger ones by default.
const MaxBody = 16 << 20

// Post is the answer to the path of one post of one user.
func Post(user, post string) string { return "user " + user + " post " + post }

// Form is the answer to a form: a value of the query and two of the body.
func Form(id, name, city string) string { return id + " " + name + " " + city }

// item is an entry of a shop's list.
type item struct {
	ID      int      `json:"id"`
	Name    string   `json:"name"`
	Price   float64  `json:"price"`
	Tags    []string `json:"tags"`
	InStock bool     `json:"in_stock"`
}

// Items is a list of ten, as it would come from a database.
func Items() any {
	names := [...]string{"anvil", "bellows", "chisel", "drill", "file", "hammer", "lathe", "pliers", "rasp", "vise"}
	items := make([]item, len(names))
	for i, name := range names {
		items[i] = item{ID: 1000 + i, Name: name, Price: 9.95 + float64(i), Tags: []string{"tool", "steel"}, InStock: i%3 != 0}
	}
	return items
}

// ItemsJSON encodes Items.
func ItemsJSON() ([]byte, error) { return json.Marshal(Items()) }
