package format

// Serving tells the user that `serve` is ready.
type Serving struct {
	URL string `json:"url"`

	// The files that a client needs; empty: none.
	CAFile   string `json:"ca_file,omitzero"`
	CertFile string `json:"cert_file,omitzero"`
	KeyFile  string `json:"key_file,omitzero"`
	SATFile  string `json:"sat_file,omitzero"`

	Paste []string // shell commands that set up another terminal
}

func (s Serving) fields(o *objectWriter) { o.result("serve", s) }

func (s Serving) human(w *writer) {
	w.print("ready: ", printable(s.URL), "\n")
	for _, line := range s.Paste {
		w.print("  ", printable(line), "\n")
	}
}

func (s Serving) raw(w *writer) { w.print(printable(s.URL), "\n") }

// Forward tells the user that `forward` is ready.
type Forward struct {
	URL        string `json:"url"`
	ServerName string `json:"tls_server_name,omitzero"` // name in the broker's certificate; empty: no TLS

	// The files that a client needs; empty: none.
	CAFile  string `json:"ca_file,omitzero"`
	SATFile string `json:"sat_file,omitzero"`

	Paste []string // shell commands that set up another terminal
}

func (f Forward) fields(o *objectWriter) { o.result("forward", f) }

func (f Forward) human(w *writer) { Serving{URL: f.URL, Paste: f.Paste}.human(w) }

func (f Forward) raw(w *writer) { Serving{URL: f.URL}.raw(w) }

// Gateway tells the user that `gateway` is ready.
type Gateway struct {
	URL   string `json:"url"`            // for Redis clients
	Store string `json:"store,omitzero"` // URL of the broker; empty: none
}

func (g Gateway) fields(o *objectWriter) { o.result("gateway", g) }

func (g Gateway) human(w *writer) {
	Serving{URL: g.URL, Paste: []string{"redis-cli -u " + g.URL}}.human(w)
}

func (g Gateway) raw(w *writer) { Serving{URL: g.URL}.raw(w) }
