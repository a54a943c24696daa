package config

import "cmp"

// certificate resolves the client certificate. The layer that names the certificate hides the keys
// of later layers, because the key must belong to the certificate.
func (r *resolver) certificate() {
	n := cmp.Or(r.first("cert-file"), len(r.layers))
	o := &r.out
	o.CertFile, o.KeyFile, o.KeyPasswordFile = r.find("cert-file", n), r.find("key-file", n), r.find("key-password-file", n)
	switch {
	case o.CertFile != "" && o.KeyFile == "":
		r.bad("cert-file", "without a key: add --key-file")
	case o.CertFile == "" && o.KeyFile != "":
		r.bad("key-file", "without a certificate: add --cert-file")
	case o.KeyFile == "" && o.KeyPasswordFile != "":
		r.bad("key-password-file", "without a key: add --cert-file and --key-file")
	}
	r.wantTLS("cert-file")
}

// login resolves how the client logs in. If one layer has a token and another a user name, the
// earlier layer applies. If one layer has a password file and another --askpass, the earlier layer
// applies, too.
func (r *resolver) login() {
	user, token := r.first("username", "password-file", "askpass"), r.first("sat-file")
	o := &r.out
	if token > 0 && (user == 0 || token <= user) {
		o.SATFile = r.all("sat-file")
		if token == user {
			from := r.layers[token-1]
			other := cmp.Or(from["username"], from["password-file"], from["askpass"]).source
			r.bad("sat-file", "together with "+other+": expected a token, or a user name and password")
		}
		return
	}
	o.Username = r.all("username")
	ask, file := r.first("askpass"), r.first("password-file")
	if ask > 0 && (file == 0 || ask <= file) {
		o.AskPass = r.flag("askpass", r.all("askpass"))
		if o.AskPass && ask == file {
			r.bad("askpass", "together with "+r.layers[file-1]["password-file"].source+": use only one of them")
		}
	}
	if !o.AskPass {
		o.PasswordFile = r.all("password-file")
	}
	switch {
	case o.Username != "":
	case o.Embedded && o.Sources["password-file"] != "--password-file":
		o.PasswordFile = "" // the file is probably for another broker
	case o.PasswordFile != "":
		r.bad("password-file", "without a user name: add --username")
	case o.AskPass:
		r.bad("askpass", "without a user name: add --username")
	}
}
