package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// proxyVariables returns, in order of precedence, the variables that name a proxy for all programs.
func proxyVariables() []string { return []string{"ALL_PROXY", "all_proxy"} }

// proxy resolves which proxy to use, if any. A proxy that is configured for sscli is always used. A
// proxy that is configured for all programs is not used for the hosts in NO_PROXY or for this
// machine. With --via there is no proxy, because kubectl decides how to reach the cluster.
func (r *resolver) proxy(env func(string) (string, bool)) {
	text := r.all("proxy")
	if r.out.Via != nil {
		if r.out.Sources["proxy"].Flag != "" {
			r.bad("proxy", "together with "+r.out.Sources["via"].String()+": expected the proxy in kubectl's own configuration")
		}
		return
	}
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
	_, secret := u.User.Password()
	switch source := r.out.Sources["proxy"]; {
	case secret && source.Flag != "":
		r.bad("proxy", "a password on the command line is visible to others: use SSCLI_PROXY")
	case secret && source.Key != "":
		r.bad("proxy", "a context holds no passwords: use SSCLI_PROXY")
	default:
		r.out.Proxy = u
	}
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
		// Package httpproxy only decides whether to use a proxy. It gets a placeholder URL,
		// because a URL that it cannot parse would mean no proxy.
		match := httpproxy.Config{HTTPSProxy: "http://proxy.invalid", NoProxy: except}
		if use, err := match.ProxyFunc()(&url.URL{Scheme: "https", Host: r.out.Address}); err != nil || use == nil {
			return ""
		}
		r.out.Sources["proxy"] = Source{Env: name}
		return text
	}
	return ""
}

// parseProxy parses the URL of a proxy. Its errors do not repeat the URL, which may hold a
// password.
func parseProxy(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text // other programs also default to http
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("not a URL: expected socks5://host:port or http://host:port")
	}
	switch u.Scheme {
	case "socks5", "socks5h", "http", "https":
	default:
		return nil, fmt.Errorf("scheme %.32q: expected socks5://, socks5h://, http:// or https://", u.Scheme)
	}
	if u.Hostname() == "" {
		return nil, errors.New("no host: expected socks5://host:port or http://host:port")
	}
	if (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("unexpected text after the host: expected socks5://host:port or http://host:port")
	}
	return u, nil
}
