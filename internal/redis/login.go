package redis

import (
	"bytes"
	"context"
	"crypto/x509"
	"net"
	"time"

	"github.com/sscli/sscli/internal/admission"
)

// handshake completes the TLS handshake, if there is one. If it fails, the first read returns the error.
func handshake(nc net.Conn) {
	const handshakeTimeout = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	_ = admission.Handshake(ctx, nc)
}

// CommonName completes the TLS handshake, and returns the common name in the client's verified
// certificate, or "" if there is none. Use it in Options.Identify and Options.Certified.
func CommonName(nc net.Conn) string {
	handshake(nc)
	if chain := verifiedChain(nc); len(chain) > 0 {
		return chain[0].Subject.CommonName
	}
	return ""
}

// verifiedChain returns the client's verified certificate and those of its issuers. It returns none before the TLS
// handshake.
func verifiedChain(nc net.Conn) []*x509.Certificate {
	if conn := admission.TLS(nc); conn != nil {
		if chains := conn.ConnectionState().VerifiedChains; len(chains) > 0 {
			return chains[0]
		}
	}
	return nil
}

const defaultUser = "default"

var (
	errWrongPass   = &Error{Code: "WRONGPASS", Text: "invalid username-password pair or user is disabled."}
	errNoConnect   = &Error{Code: "NOPERM", Text: "this user has no permissions to connect"}
	errNoAuth      = &Error{Code: "NOAUTH", Text: "Authentication required."}
	errHelloAuth   = &Error{Code: "NOAUTH", Text: "HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"}
	errLoginInside = &Error{Text: "unsupported: a transaction cannot log in"}
	errNoUsers     = &Error{Text: "AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"}
)

// identify sets the user that the connection itself authenticates, if any.
func (c *conn) identify() {
	handshake(c.nc)
	c.certificates = admission.CertificateMemory(c.nc)
	if c.s.opts.Identify != nil {
		c.certified = c.s.opts.Identify(c.nc)
	}
	c.onlyUser = c.certified
	if c.s.opts.Certified != nil {
		c.onlyUser = c.s.opts.Certified(c.nc)
	}
	c.logout()
}

// logout undoes the login by AUTH or HELLO. Only a user that the connection itself authenticates stays
// logged in.
func (c *conn) logout() {
	c.setUser(c.certified, c.s.opts.Login == nil || c.certified != "")
	c.endLoginAt(time.Time{})
}

func (c *conn) setUser(user string, authenticated bool) {
	c.kept.Store(0)
	who := Caller{ID: c.who.ID, User: user, Memory: &c.kept}
	for _, certificate := range verifiedChain(c.nc) {
		who.Subjects = append(who.Subjects, certificate.Subject)
	}
	if authenticated && c.s.opts.LoggedIn != nil {
		c.unlock()
		authenticated = c.s.opts.LoggedIn(&who)
	}
	c.lockInTurn(func() bool { return false }) // a crowd logs in
	c.who, c.authenticated = who, authenticated
	c.s.mu.Unlock()
	if authenticated {
		c.ticket.LoggedIn()
	}
}

// endLoginAt makes the connection end when a login ends. The zero time means that it does not.
func (c *conn) endLoginAt(t time.Time) {
	c.unlock()
	if c.cancelEnd != nil {
		c.cancelEnd()
		c.cancelEnd = nil
	}
	if !t.IsZero() {
		c.cancelEnd = c.s.opts.At(t, func() {
			c.out.mu.Lock()
			c.out.end() // at once, so that nothing later is sent to the client or run for it
			c.out.mu.Unlock()
			// close may block. The connection's own goroutine still runs, because it calls cancelEnd before it ends.
			c.s.running.Go(func() {
				c.s.log.Info("closing a client whose login has ended", "client", c.who.ID)
				c.close()
			})
		})
	}
}

// mayAll reports whether the user may use all keys, and so may run commands that affect all clients.
func (c *conn) mayAll() bool {
	if c.s.local == nil {
		return true
	}
	if !c.locked {
		c.s.local.Lock()
		defer c.s.local.Unlock()
	}
	return c.s.local.MayRead(&c.who, nil)
}

// login checks the user and the password of AUTH or HELLO, and logs the client in if they are right.
func (c *conn) login(user, password []byte) error {
	if c.s.opts.Login == nil {
		if string(user) != defaultUser && (c.onlyUser == "" || string(user) != c.onlyUser) {
			return errWrongPass
		}
		return nil
	}
	if c.executing {
		return errLoginInside // a login takes time, and the Local is locked
	}
	if len(user) > maxBulkUnauthenticated || len(password) > maxBulkUnauthenticated {
		return errWrongPass
	}
	c.unlock()
	as, name, until := "", string(user), time.Time{}
	secret := bytes.Clone(password)
	err := c.s.logins.Check(address(c.nc.RemoteAddr()), name, func() (ok bool) {
		as, until, ok = c.s.opts.Login(name, secret)
		return ok && (c.onlyUser == "" || as == c.onlyUser)
	})
	switch err {
	case nil:
		if c.setUser(as, true); !c.authenticated {
			c.logout()
			return errNoConnect
		}
		if !c.chargeInput(len(c.in.buf)) {
			c.logout()
			return errMemory
		}
		c.endLoginAt(until)
		return nil
	case admission.ErrBusy:
		return err
	}
	return errWrongPass
}

func runAuth(c *conn, args [][]byte) error {
	user, password := []byte(defaultUser), args[1]
	switch {
	case len(args) > 3:
		return errSyntax
	case len(args) == 3:
		user, password = args[1], args[2]
	case c.s.opts.Login == nil:
		return errNoUsers
	}
	if err := c.login(user, password); err != nil {
		return err
	}
	return c.reply(replyOK)
}

func runHello(c *conn, args [][]byte) error {
	version := 2
	if c.resp3 {
		version = 3
	}
	if len(args) > 1 {
		n, ok := parseInt(args[1])
		if !ok {
			return &Error{Text: "Protocol version is not an integer or out of range"}
		}
		if n != 2 && n != 3 {
			return &Error{Code: "NOPROTO", Text: "unsupported protocol version"}
		}
		version = int(n)
	}
	var user, password, name []byte
	for i := 2; i < len(args); i++ {
		switch more := len(args) - i - 1; {
		case equalFold(args[i], "auth") && more >= 2:
			user, password = args[i+1], args[i+2]
			i += 2
		case equalFold(args[i], "setname") && more >= 1:
			i++
			name = args[i]
			if err := checkClientName(name); err != nil {
				return err
			}
		default:
			return &Error{Text: "Syntax error in HELLO option '" + printable(args[i], maxShown) + "'"}
		}
	}
	if user != nil {
		if err := c.login(user, password); err != nil {
			return err
		}
	}
	if !c.authenticated {
		return errHelloAuth
	}
	if name != nil {
		c.setName(name)
	}
	c.setProtocol(version == 3)
	c.reply(pairs{
		"server", "redis", "version", redisVersion, "proto", version, "id", int(c.id), "mode", "standalone", "role", "master", "modules", []any{},
	})
	return nil
}

func (c *conn) setProtocol(resp3 bool) {
	c.resp3 = resp3
	c.pushes.Store(resp3)
}

func runReset(c *conn, _ [][]byte) error {
	c.discard()
	c.standInLine()
	c.s.endSubscriptions(c)
	c.setProtocol(false)
	c.setName(nil)
	c.replyOff, c.skip = false, 0
	c.noEvict.Store(false)
	c.noTouch.Store(false)
	c.unmute()
	c.logout()
	return c.reply(status("RESET"))
}
