package format

// Serving is the result that `serve`, `forward` and `gateway` print when they are ready.
type Serving struct {
	Op         string // "serve", "forward" or "gateway"
	URL        string `json:"url"`
	ServerName string `json:"tls_server_name,omitzero"` // of forward: the TLS server name; empty = none
	Store      string `json:"store,omitzero"`           // of gateway: the URL of the broker; empty = none

	// The files that a client needs; empty = none.
	CAFile   string `json:"ca_file,omitzero"`
	CertFile string `json:"cert_file,omitzero"`
	KeyFile  string `json:"key_file,omitzero"`
	SATFile  string `json:"sat_file,omitzero"`

	Paste []string // shell commands that set up or test a client
}

func (s Serving) fields(o *objectWriter) { o.result(s.Op, s) }

func (s Serving) human(w *writer) {
	w.print("ready: ", printable(s.URL), "\n")
	for _, line := range s.Paste {
		w.print("  ", printable(line), "\n")
	}
}

func (s Serving) raw(w *writer) { w.print(printable(s.URL), "\n") }
