package check

import (
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"github.com/sscli/sscli/format"
)

func brokerKind() kind { return kind{name: aBroker, judge: (*verdict).broker} }

// A broker is what is known of a broker.
type broker struct {
	err      error         // why the store did not answer; nil = it answers
	code     int           // the exit code of err
	rtt      time.Duration // of the last answer
	clock    *storeClock   // nil = not measured
	clockErr error         // why it was not measured
	drift    time.Duration // how far a client's clock may be ahead of the store's
	lost     error         // why it is not known what earlier runs saw; nil = it is
	token    time.Time     // when the token ends; zero = no token, or one without an end
	counts   map[string]count

	cert     *x509.Certificate // the certificate that expires first; nil = no TLS
	verified bool              // the broker's chain was verified, so that cert may be its CA

	gaps   int       // breaks of the watch
	newest time.Time // the newest version that was read, which the store's clock has passed
}

func (v *verdict) broker(from *view, local time.Time) {
	b := &from.broker
	if v.spec.conditions["rtt"] {
		v.measure(lasting("rtt", b.rtt), "a round trip of %s", "", "rtt")
	}
	switch {
	case !v.spec.conditions["skew"]:
	case b.clock == nil:
		v.problem(unknown, "the store's clock is not known: %v", b.clockErr)
	default:
		v.skew(b.skew(local), b.clock.exact)
	}
	if b.cert == nil {
		v.end("cert-expires", "certificate", "", time.Time{}, local, "the connection has no TLS")
	} else {
		v.end("cert-expires", "certificate", fmt.Sprintf(" of %q", b.cert.Subject), b.cert.NotAfter, local, "")
		if v.spec.conditions["cert-expires"] && !b.verified {
			v.problem(unknown, "the broker's certificate was not verified, so it is not known when its CA expires")
		}
	}
	v.end("token-expires", "token", "", b.token, local, "there is no service-account token with an end")
	if len(v.problems) == 0 && len(v.facts) == 0 {
		v.fact("the store answers, %s round trip", format.Span(b.rtt))
	}
}

func (v *verdict) skew(ahead span, exact bool) {
	sides := "this machine's clock is %s ahead of the store's"
	apart := span{ahead.least, ahead.most}
	switch {
	case ahead.most < 0:
		apart, sides = span{-ahead.most, -ahead.least}, "this machine's clock is %s behind the store's"
	case ahead.least < 0:
		apart, sides = span{0, max(-ahead.least, ahead.most)}, "this machine's clock and the store's are %s apart"
	}
	unsure := "the round trip took too long to say"
	if !exact {
		unsure = fastClient
	}
	if v.measure(spanning("skew", apart, unsure), sides, "", "skew") {
		v.fact("the clocks are at most %s apart", format.Span(apart.most))
	}
}

// end judges when a certificate or a token expires. of follows what it is; none says why there is no such time.
func (v *verdict) end(condition, what, of string, at, local time.Time, none string) {
	switch {
	case !v.spec.conditions[condition]:
	case at.IsZero():
		v.problem(unknown, "%s", none)
	default:
		m := lasting(what, at.Sub(local))
		m.show = func(n number) string { return duration(n).Round(time.Second).Abs().String() }
		text := "the " + what + strings.ReplaceAll(of, "%", "%%") + " expires in %s"
		if at.Before(local) {
			text = "the " + what + strings.ReplaceAll(of, "%", "%%") + " expired %s ago"
		}
		if v.measure(m, text, condition, "") {
			v.fact(text, m.show(m.value))
		}
	}
}
