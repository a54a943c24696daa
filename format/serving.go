package format

// Serving tells the user that a server is ready.
type Serving struct {
	Op         string // "serve", "forward" or "gateway"
	URL        string `json:"url"`
	ServerName string `json:"tls_server_name,omitzero"` // name in the broker's certificate; empty: no TLS
	Store      string `json:"store,omitzero"`           // of a gateway: URL of the broker; empty: none

	// The files that a client needs; empty: none.
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
