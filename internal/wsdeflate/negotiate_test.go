package wsdeflate

import "testing"

func TestNegotiate(t *testing.T) {
	full := Params{Bits: 15, ClientBits: 15}
	small := Params{Bits: 12, ClientBits: 11}
	none := Params{Bits: 12, ClientBits: 12, NoTakeover: true, ClientNoTakeover: true}
	for _, tt := range []struct {
		name   string
		fields []string
		want   Params
		p      Params
		answer string
		err    bool
	}{
		{"no field", nil, full, Params{}, "", false},
		{"plain", []string{"permessage-deflate"}, full, full, "permessage-deflate", false},
		{"others first", []string{"x-webkit-deflate-frame, mux; max=4", "permessage-deflate"}, full, full, "permessage-deflate", false},
		{"browser", []string{"permessage-deflate; client_max_window_bits"}, small, small, "permessage-deflate; client_max_window_bits=11", false},
		{"browser, all", []string{"permessage-deflate; client_max_window_bits"}, full, full, "permessage-deflate", false},
		{"a client that cannot limit its window", []string{"permessage-deflate"}, small, Params{12, 15, false, true}, "permessage-deflate; client_no_context_takeover", false},
		{"no takeover wanted", []string{"permessage-deflate; client_max_window_bits=10"}, none, Params{12, 10, true, true},
			"permessage-deflate; client_max_window_bits=10; server_no_context_takeover; client_no_context_takeover", false},
		{"no takeover offered", []string{"permessage-deflate; server_no_context_takeover; client_no_context_takeover"}, full, Params{15, 15, true, true},
			"permessage-deflate; server_no_context_takeover; client_no_context_takeover", false},
		{"smaller server window", []string{"permessage-deflate;server_max_window_bits=9"}, full, Params{9, 15, false, false}, "permessage-deflate; server_max_window_bits=9", false},
		{"larger server window", []string{`permessage-deflate ; server_max_window_bits = "14"`}, Params{Bits: 12, ClientBits: 15}, Params{12, 15, false, false}, "permessage-deflate; server_max_window_bits=12", false},
		{"fallback", []string{"permessage-deflate; unknown, permessage-deflate; server_max_window_bits=8"}, full, Params{8, 15, false, false}, "permessage-deflate; server_max_window_bits=8", false},
		{"first of two", []string{"permessage-deflate; server_max_window_bits=10, permessage-deflate"}, full, Params{10, 15, false, false}, "permessage-deflate; server_max_window_bits=10", false},
		{"empty elements", []string{"", " , ,permessage-deflate ,, "}, full, full, "permessage-deflate", false},

		{"unknown parameter", []string{"permessage-deflate; x=1"}, full, Params{}, "", false},
		{"twice", []string{"permessage-deflate; server_no_context_takeover; server_no_context_takeover"}, full, Params{}, "", false},
		{"a value too many", []string{"permessage-deflate; server_no_context_takeover=1"}, full, Params{}, "", false},
		{"a value too few", []string{"permessage-deflate; server_max_window_bits"}, full, Params{}, "", false},
		{"7 bits", []string{"permessage-deflate; server_max_window_bits=7"}, full, Params{}, "", false},
		{"16 bits", []string{"permessage-deflate; client_max_window_bits=16"}, full, Params{}, "", false},
		{"leading zero", []string{"permessage-deflate; client_max_window_bits=08"}, full, Params{}, "", false},
		{"no number", []string{"permessage-deflate; client_max_window_bits=+9"}, full, Params{}, "", false},

		{"nothing", []string{""}, full, Params{}, "", true},
		{"only empty elements", []string{" ,", ","}, full, Params{}, "", true},
		{"empty parameter", []string{"permessage-deflate;"}, full, Params{}, "", true},
		{"empty value", []string{"permessage-deflate; x="}, full, Params{}, "", true},
		{"unfinished string", []string{`permessage-deflate; x="1`}, full, Params{}, "", true},
		{"string that is no token", []string{`permessage-deflate; x="a b"`}, full, Params{}, "", true},
		{"no token", []string{"permessage deflate"}, full, Params{}, "", true},
		{"malformed after a good offer", []string{"permessage-deflate, ;"}, full, Params{}, "", true},
	} {
		p, answer, err := Negotiate(tt.fields, tt.want)
		if p != tt.p || answer != tt.answer || (err != nil) != tt.err {
			t.Errorf("%s: %+v %q %v", tt.name, p, answer, err)
		}
	}
}
