package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// proxyVariables are the variables that other programs read too; the first that is
// set counts.
func proxyVariables() []string { return []string{"ALL_PROXY", "all_proxy"} }

// proxy decides on the way to the broker. A proxy that was named for sscli is used
// always; one that was named for all programs, for the hosts that NO_PROXY does not
// name and that are not of this machine.
func (r *resolver) proxy(env func(string) (string, bool)) {
	text := r.all("proxy")
	if text == "" {
		text = r.commonProxy(env)
	}
	if text == "" {
		return
	}
	u, err := parseProxy(text)
	if err != nil {
		r.bad("proxy", err.Error())
		return
	}
	if _, secret := u.User.Password(); secret && r.out.Sources["proxy"] == "--proxy" {
		r.bad("proxy", "a password on the command line is seen by everybody: want SSCLI_PROXY")
		return
	}
	if _, secret := u.User.Password(); secret && strings.HasPrefix(r.out.Sources["proxy"], contextSource) {
		r.bad("proxy", "a context holds no secrets: want SSCLI_PROXY")
		return
	}
	r.out.Proxy = u
}

func (r *resolver) commonProxy(env func(string) (string, bool)) string {
	if r.out.Address == "" {
		return ""
	}
	for _, name := range proxyVariables() {
		text, ok := env(name)
		if !ok || text == "" {
			continue
		}
		except, ok := env("NO_PROXY")
		if !ok || except == "" {
			except, _ = env("no_proxy")
		}
		// The proxy is a stand-in: only whether to use one is asked, and httpproxy
		// takes one that it cannot read for none.
		match := httpproxy.Config{HTTPSProxy: "http://proxy.invalid", NoProxy: except}
		if use, err := match.ProxyFunc()(&url.URL{Scheme: "https", Host: r.out.Address}); err != nil || use == nil {
			return ""
		}
		r.out.Sources["proxy"] = name
		return text
	}
	return ""
}

// parseProxy reads the URL of a proxy. Its errors do not repeat it: it may hold a
// password.
func parseProxy(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text // as others read these variables
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("not a URL: want socks5://host:port or http://host:port")
	}
	switch u.Scheme {
	case "socks5", "socks5h", "http", "https":
	default:
		return nil, fmt.Errorf("scheme %.32q: want socks5://, socks5h://, http:// or https://", u.Scheme)
	}
	if u.Hostname() == "" {
		return nil, errors.New("no host: want socks5://host:port or http://host:port")
	}
	if (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("something stands behind the host: want socks5://host:port or http://host:port")
	}
	return u, nil
}
